#pragma once
/// A clock that advances only while the watched processes can run. Time spent waiting for a busy
/// CPU does not count. On a busy machine nobody is to be taken for one that gets nowhere.
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

namespace checker {

/// What processes, and all that they have started, did so far.
struct ProcessorUse {
  double spent = 0;    ///< seconds on a processor
  double delayed = 0;  ///< seconds that threads waited for one, as far as they got it since
  bool wants = false;  ///< one wants a processor or a disk just now
};
ProcessorUse processor_use(const std::vector<pid_t>& processes);

class OwnTime {
 public:
  using Clock = std::chrono::steady_clock;
  using Meter = std::function<ProcessorUse(const std::vector<pid_t>&)>;

  explicit OwnTime(Clock::time_point begin, Meter meter = processor_use)
      : window_(begin), meter_(std::move(meter)) {}

  /// Measures once a second. To be asked often.
  void look(const std::vector<pid_t>& processes, Clock::time_point now);

  /// Seconds since the beginning that were theirs.
  double seconds(Clock::time_point now) const;
  /// Whether they did next to nothing in the last second, and wanted no more.
  bool idle() const { return idle_; }

 private:
  Clock::time_point window_;  ///< where the present second began
  Meter meter_;
  double passed_ = 0;  ///< by then
  double share_ = 1;   ///< of the last second, that was theirs
  double spent_ = 0, delayed_ = 0;
  bool idle_ = false;
};

}  // namespace checker
