#include "judge/watchdog.hpp"

#include <algorithm>

namespace checker {

namespace {

// Waiting ranks sleep in the kernel: their processors' time stops. What computes gets more time: a
// small model's steps take milliseconds, but GPUs may take seconds to get started. There a rank
// that waits keeps its processor busy, and nothing that it does takes as long as kSpinning. All of
// it is the ranks' own time, but for what nobody has to wait for.
// A program that sleeps waits for nobody, and wakes up.
constexpr double kWaiting = 3, kAsleep = 12, kBusy = 8, kBusyOnGpus = 15, kSpinning = 8,
                 kTooLong = 120, kStart = 15;
constexpr double kForEver = 1200;

}  // namespace

Watchdog::Watchdog(const std::vector<std::filesystem::path>& logs, bool on_gpus,
                   OwnTime::Meter meter)
    : on_gpus_(on_gpus), begin_(Clock::now()), time_(begin_, std::move(meter)) {
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
  time_.look(pids_, now);
  const double passed = time_.seconds(now);
  if (sum != seen_) {
    seen_ = sum;
    progress_ = passed;
    between_collectives_.reset();
  }
  const double quiet = passed - progress_;
  if (passed > kTooLong || std::chrono::duration<double>(now - begin_).count() > kForEver) {
    stall_ = Stall::too_long;
  } else if (quiet > (started_ ? kWaiting : kStart) && time_.idle() &&
             (quiet > kAsleep || !between_collectives())) {
    stall_ = Stall::waiting;
  } else if (on_gpus_ && started_ && quiet > kSpinning) {
    stall_ = Stall::waiting;
  } else if (quiet > (on_gpus_ ? kBusyOnGpus : kBusy) && !time_.idle()) {
    stall_ = Stall::busy;
  }
  return stall_;
}

bool Watchdog::between_collectives() {
  using instrumentation::Kind;
  if (between_collectives_) return *between_collectives_;
  const auto nothing_is_open = [](const LiveLog& live) {
    const auto log = live.read();
    const auto count = [&](Kind kind) {
      return std::ranges::count(log.events, kind, &Event::kind);
    };
    return count(Kind::group) > 0 && count(Kind::exit) == 0 &&
           count(Kind::collective) == count(Kind::completed);
  };
  between_collectives_ = std::ranges::all_of(logs_, nothing_is_open);
  return *between_collectives_;
}

}  // namespace checker
