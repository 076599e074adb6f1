#include "tasks/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "console/terminal.hpp"
#include "distributed_utils/process_group.hpp"
#include "evidence.hpp"
#include "instrumentation/recording.hpp"
#include "phases.hpp"
#include "progress_bar.hpp"

namespace tasks {

namespace {

constexpr std::chrono::milliseconds redraw_interval{250};

// A data set cannot be told which run it serves: a trainer knows neither augmentation nor epochs of
// data. So it is the process's one run.
std::atomic<int64_t> epoch_of_process{0};

}  // namespace

Progress::Progress(const Options& options, size_t train_size)
    : graph_(options),
      max_steps_(options.max_steps),
      world_size_(distributed_utils::get_world_size()),
      train_size_(static_cast<int64_t>(train_size)),
      draws_(distributed_utils::get_rank() == 0 && console::can_draw(STDERR_FILENO)) {
  steps_per_epoch_ = train_size_ / world_size_ / options.batch_size;
  if (steps_per_epoch_ == 0) {
    throw Error(
        fmt::format("the training split has {} samples, too few for one batch of {} on each of {} "
                    "ranks; use a --batch-size of at most {}, or more data",
                    train_size_, options.batch_size, world_size_, train_size_ / world_size_));
  }
  total_steps_ = options.epochs * steps_per_epoch_;
  if (max_steps_ > 0) total_steps_ = std::min(total_steps_, max_steps_);
  evidence::run_planned(world_size_, total_steps_);
  say_the_plan(options.batch_size);
  count(0);
}

// Several ranks work long before the first of them has an epoch to report, and the output of a job
// would not say how many there were. A bar says as much of a single rank. The checker looks at
// every line that a rank writes: where it records, there is none of ours.
void Progress::say_the_plan(int64_t batch_size) const {
  const bool bar_says_it = draws_ && world_size_ == 1;
  if (bar_says_it || distributed_utils::get_rank() != 0 || instrumentation::recording::enabled())
    return;
  // A trainer that does not share the data takes more steps, so nothing is said of its loop.
  fmt::print(stderr, "{} {}, batches of {} each: {} steps for one pass over the data\n",
             world_size_, world_size_ == 1 ? "rank" : "ranks", batch_size, steps_per_epoch_);
  std::fflush(stderr);
}

int64_t Progress::current_epoch() { return epoch_of_process; }

void Progress::resume(int64_t steps) { count(steps); }

void Progress::count(int64_t steps) {
  steps_ = steps;
  epoch_of_process = steps / steps_per_epoch_;
}

Progress::~Progress() { clear(); }

bool Progress::finished() const { return max_steps_ > 0 && steps_ >= max_steps_; }

bool Progress::step(const Loss& loss) {
  const auto now = Clock::now();
  measure(now, loss.count);
  count(steps_ + 1);
  phases::step_ends(steps_, finished() || steps_ % steps_per_epoch_ == 0, loss);
  if (!draws_) return !finished();
  if (finished() || steps_ % steps_per_epoch_ == 0) {
    clear();
  } else if (now - drawn_ >= redraw_interval) {
    drawn_ = now;
    draw(loss);
  }
  return !finished();
}

void Progress::report(const Score& training, const Score& validation) {
  evidence::reported(training);
  evidence::reported(validation);
}

void Progress::report(const Score& test) { evidence::reported(test); }

void Progress::measure(Clock::time_point now, int64_t targets) {
  if (steps_ % steps_per_epoch_ != 0) {
    ++measured_steps_;
    measured_targets_ += targets * world_size_;
    measured_ += now - last_;
  }
  last_ = now;
}

void Progress::draw(const Loss& loss) {
  BarState state{.step = steps_, .total_steps = total_steps_};
  state.loss = loss.mean().item<double>();
  if (measured_.count() > 0) {
    state.targets_per_second = double(measured_targets_) / measured_.count();
    state.seconds_left = double(std::max<int64_t>(total_steps_ - steps_, 0)) * measured_.count() /
                         double(measured_steps_);
  }
  // The last column stays free: writing it makes some terminals wrap.
  const auto line =
      format_bar(state, console::width(STDERR_FILENO, 80) - 1, console::has_colour(STDERR_FILENO));
  // The cursor goes back to the line's start, so that other output lands on the bar, not behind it.
  fmt::print(stderr, "\r{}\x1b[K\r", line);
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace tasks
