#include "judge/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "process/family.hpp"

namespace checker {

namespace {

// Waiting ranks sleep in the kernel: their processors' time stands still. What computes gets more
// time, because a busy machine slows it down. On GPUs a rank that waits keeps its processor busy,
// and nothing that a rank does there takes as long as kSpinning.
constexpr double kWaiting = 3, kBusy = 15, kSpinning = 8, kTooLong = 120, kStart = 30;
// The share of one processor below which a run is idle, and the stretch over which that is
// measured.
constexpr double kIdleShare = 0.15, kWindow = 1;

double seconds(Watchdog::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Whether a thread waits for a processor or a disk rather than for somebody: on a machine with much
// other work it gets nowhere either.
bool wants_to_go_on(pid_t pid) {
  std::error_code ended;
  const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
  for (std::filesystem::directory_iterator thread(threads, ended), end; !ended && thread != end;
       thread.increment(ended)) {
    const auto fields = stat_fields(thread->path() / "stat");
    if (fields.starts_with('R') || fields.starts_with('D')) return true;
  }
  return false;
}

double processor_seconds_of(pid_t pid) {
  const auto text = stat_fields("/proc/" + std::to_string(pid) + "/stat");
  if (text.empty()) return 0;
  std::istringstream fields(text);
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

Watchdog::Watchdog(const std::vector<std::filesystem::path>& logs, bool on_gpus)
    : on_gpus_(on_gpus), begin_(Clock::now()), progress_(begin_), window_(begin_) {
  for (const auto& log : logs) logs_.emplace_back(log);
}

Stall Watchdog::look(Clock::time_point now) {
  if (stall_ != Stall::none) return stall_;
  uint64_t sum = lines_;
  bool all_started = true;
  for (const auto& log : logs_) {
    const uint64_t length = log.length();
    sum += length;
    all_started = all_started && length > 0;
  }
  started_ = started_ || all_started;
  if (sum != seen_) {
    seen_ = sum;
    progress_ = now;
  }
  if (seconds(now - window_) >= kWindow) {
    // With those that ranks have started: in a box, the rank itself is one.
    const auto all = families_of(pids_);
    double spent = 0;
    for (const pid_t pid : all) spent += processor_seconds_of(pid);
    idle_ = spent - processor_at_window_ < kIdleShare * seconds(now - window_) &&
            std::ranges::none_of(all, wants_to_go_on);
    processor_at_window_ = spent;
    window_ = now;
  }
  const double quiet = seconds(now - progress_);
  if (seconds(now - begin_) > kTooLong) {
    stall_ = Stall::too_long;
  } else if (quiet > (started_ ? kWaiting : kStart) && idle_) {
    stall_ = Stall::waiting;
  } else if (on_gpus_ && started_ && quiet > kSpinning) {
    stall_ = Stall::waiting;
  } else if (quiet > kBusy) {
    stall_ = Stall::busy;
  }
  return stall_;
}

}  // namespace checker
