#include "graph/replays.hpp"

#ifdef USE_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "distributed_utils/process_group.hpp"
#include "instrumentation/monitoring.hpp"
#include "tasks/options.hpp"
#endif

namespace tasks::graph {

#ifdef USE_CUDA
namespace {

namespace monitoring = instrumentation::monitoring;
using Clock = std::chrono::steady_clock;
using Event = at::cuda::CUDAEvent;

// Between two looks of the thread at what has ended.
constexpr std::chrono::milliseconds kInterval{100};

struct Replay {
  Event begin, end;
  ReplayedStep step;
};

// The GPU's time in the clock of monitoring: that of one event is known, others are so much later.
class GpuClock {
 public:
  // Once: the first event is waited for.
  void start(Event& event) {
    if (last_) return;
    event.synchronize();
    time_ = static_cast<double>(monitoring::now());
    last_ = &event;
  }
  // Of an event that has passed, not before the one that was asked for last; which stays until
  // the next is asked for.
  uint64_t time_of(Event& event) {
    if (&event != last_) time_ += 1e6 * last_->elapsed_time(event);
    last_ = &event;
    return static_cast<uint64_t>(time_);
  }

 private:
  Event* last_ = nullptr;
  double time_ = 0;  ///< nanoseconds
};

}  // namespace

struct Replays::State {
  std::mutex mutex;
  std::deque<std::unique_ptr<Replay>> under_way;
  std::unique_ptr<Replay> last;  // that has ended, for the clock
  std::unique_ptr<Replay> next;  // that runs or waits for its label
  bool labelled = true;
  bool watched = false;
  GpuClock clock;
  Clock::time_point progress;

  Event new_event() const {
    return Event(monitoring::enabled() ? cudaEventDefault : cudaEventDisableTiming);
  }

  // Under the mutex.
  void take_ended(bool wait) {
    while (!under_way.empty()) {
      Replay& first = *under_way.front();
      if (wait) first.end.synchronize();
      if (!first.end.query()) return;
      progress = Clock::now();
      if (monitoring::enabled()) record(first);
      last = std::move(under_way.front());
      under_way.pop_front();
    }
  }

  // The GPU waits from the end of one step's work to the beginning of the next one's: for the
  // host, which has fetched a batch meanwhile. Evaluations and checkpoints come before the host
  // begins to fetch, so their time does not count.
  void record(Replay& replay) {
    const uint64_t before = last ? clock.time_of(last->end) : clock.time_of(replay.begin);
    const uint64_t begin = clock.time_of(replay.begin), end = clock.time_of(replay.end);
    const bool follows = last && last->step.number + 1 == replay.step.number;
    const uint64_t idle = follows ? std::clamp(replay.step.begun, before, begin) : begin;
    instrumentation::StepRecord record{.step = replay.step.number,
                                       .begin = idle,
                                       .phases = {begin - idle},
                                       .collectives = 0,
                                       .targets = replay.step.targets,
                                       .learning_rate = replay.step.learning_rate};
    monitoring::record_one(instrumentation::Kind::step, record, end);
  }

  void watch(std::chrono::milliseconds timeout) {
    while (true) {
      std::this_thread::sleep_for(kInterval);
      {
        const std::lock_guard lock(mutex);
        take_ended(false);
        if (under_way.empty() || Clock::now() - progress < timeout) continue;
      }
      report(
          Error(fmt::format("the collectives of a training step, in a CUDA graph over NCCL, have "
                            "not ended within {} s",
                            timeout.count() / 1000)));
      std::abort();
    }
  }
};

namespace {

std::chrono::milliseconds timeout_of_world() {
  return distributed_utils::world_group()->getDefaultBackend()->getBackendOptions()->timeout;
}

}  // namespace

Replays::Replays() : state_(new State) {}

void Replays::begins(torch::Device /*device*/) {
  State& state = *state_;
  if (!state.watched) {
    state.watched = true;
    if (distributed_utils::get_world_size() > 1) {
      std::thread([&state, timeout = timeout_of_world()] { state.watch(timeout); }).detach();
    }
  }
  state.next.reset(new Replay{state.new_event(), state.new_event(), {}});
  if (!monitoring::enabled()) return;
  state.next->begin.record();
  const std::lock_guard lock(state.mutex);
  state.clock.start(state.next->begin);
}

void Replays::ends() {
  State& state = *state_;
  state.next->end.record();
  state.labelled = false;
}

bool Replays::wants_label() const { return !state_->labelled; }

void Replays::label(const ReplayedStep& step) {
  State& state = *state_;
  state.next->step = step;
  state.labelled = true;
  const std::lock_guard lock(state.mutex);
  if (state.under_way.empty()) state.progress = Clock::now();
  state.under_way.push_back(std::move(state.next));
  state.take_ended(false);
}

void Replays::finish() {
  if (!monitoring::enabled()) return;
  const std::lock_guard lock(state_->mutex);
  state_->take_ended(true);
}
#else
struct Replays::State {
  bool wants_label = false;  // nothing is ever replayed
};
Replays::Replays() : state_(new State) {}
void Replays::begins(torch::Device /*device*/) {}
void Replays::ends() {}
void Replays::label(const ReplayedStep& /*step*/) {}
bool Replays::wants_label() const { return state_->wants_label; }
void Replays::finish() {}
#endif

Replays& Replays::of_process() {
  static Replays instance;
  return instance;
}

}  // namespace tasks::graph
