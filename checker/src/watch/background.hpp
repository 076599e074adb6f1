#pragma once
/// Judges in the background while the user looks at the screen.
#include <sys/types.h>

#include <string>

#include "judge/judging.hpp"
#include "process/descriptor.hpp"

namespace checker {

/// The judge in a process of its own, so that keys and files are heeded while it works, and so that
/// it can be ended. What it prints is lost. The caller must hold a SignalWatch and be the only
/// thread.
class BackgroundJudge {
 public:
  BackgroundJudge(const Judge& judge, const Course& course, const Step& step, CheckOptions options);
  /// Ends it, with all that it started.
  ~BackgroundJudge();
  BackgroundJudge(const BackgroundJudge&) = delete;
  BackgroundJudge& operator=(const BackgroundJudge&) = delete;

  /// Readable when there is news.
  int descriptor() const { return news_.get(); }
  /// Takes the news. True once it has ended.
  bool read();
  /// What is going on there.
  const std::string& stage() const { return stage_; }
  /// After the end. Throws Error if it did not get to a report.
  Report result() const;

 private:
  void take(const std::string& line);

  pid_t pid_ = -1;
  Descriptor news_;
  std::string rest_, stage_, report_, error_;
};

}  // namespace checker
