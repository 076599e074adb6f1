#pragma once
/// Detects that ranks no longer make progress, long before their own timeouts.
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <list>
#include <optional>
#include <vector>

#include "evidence/log.hpp"
#include "judge/own_time.hpp"

namespace checker {

enum class Stall {
  none,
  waiting,   ///< all ranks wait, for each other or for nothing
  busy,      ///< a rank computes, but nothing comes of it
  too_long,  ///< the run as a whole
};

/// Watches the ranks of one run. Progress is a record or a line of output.
class Watchdog {
 public:
  using Clock = OwnTime::Clock;

  Watchdog(const std::vector<std::filesystem::path>& logs, bool on_gpus,
           OwnTime::Meter meter = processor_use);

  void add(pid_t pid) { pids_.push_back(pid); }
  /// A rank has written a line.
  void line() { ++lines_; }
  /// To be asked often. Once it is not none, it stays what it is.
  Stall look(Clock::time_point now = Clock::now());

 private:
  // Whether every rank has joined a group, and none is in a collective or has left.
  bool between_collectives();

  bool on_gpus_;
  std::list<LiveLog> logs_;
  std::vector<pid_t> pids_;
  uint64_t lines_ = 0, seen_ = 0;
  bool started_ = false;
  std::optional<bool> between_collectives_;  ///< since the last progress; not looked at yet
  Stall stall_ = Stall::none;
  Clock::time_point begin_;
  OwnTime time_;
  double progress_ = 0;  ///< when there was some last
};

}  // namespace checker
