#include "phases.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "evaluation_loss.hpp"
#include "evidence.hpp"
#include "gradient_sizes.hpp"
#include "graph/replays.hpp"
#include "instrumentation/log.hpp"
#include "instrumentation/monitoring.hpp"
#include "instrumentation/pause.hpp"
#include "instrumentation/recording.hpp"
#include "memory_by_kind.hpp"
#include "step_losses.hpp"

namespace tasks::phases {

namespace monitoring = instrumentation::monitoring;
namespace recording = instrumentation::recording;
using instrumentation::kStepPhases;
using instrumentation::kUnknown;
using instrumentation::Phase;

namespace {

// What the thread that trains does now, and what the step that runs has taken so far.
class Watch {
 public:
  explicit Watch(std::thread::id thread) : thread_(thread) {}

  bool is_mine() const { return std::this_thread::get_id() == thread_; }
  bool is_in(Phase phase) const { return phase_ == phase; }

  // The phase that runs ends, at `end` or now; the next begins now.
  void enter(Phase next, uint32_t split = kUnknown, std::optional<uint64_t> end = {}) {
    const uint64_t now = monitoring::now();
    if (index(phase_) < sums_.size()) sums_[index(phase_)] += end.value_or(now) - since_;
    if (end) mark(Phase::none, kUnknown, *end);
    mark(next, split, now);
    phase_ = next;
    since_ = now;
  }

  // What ran was not a phase after all: there came another epoch's end, say.
  void drop() {
    if (phase_ == Phase::none) return;
    mark(Phase::dropped, kUnknown, monitoring::now());
    phase_ = Phase::none;
  }

  void begin_step(uint64_t step) {
    step_ = step;
    begun_ = monitoring::now();
    sums_ = {};
    if (!monitoring::enabled()) return;
    monitoring::set_step(step);
    monitoring::collective_time();  // what came between steps belongs to none
  }

  void end_step(uint64_t number, uint64_t targets) {
    if (!monitoring::enabled()) return;
    instrumentation::StepRecord record{.step = number,
                                       .begin = begun_,
                                       .phases = {},
                                       .collectives = monitoring::collective_time(),
                                       .targets = targets,
                                       .learning_rate = learning_rate};
    std::copy(sums_.begin(), sums_.end(), record.phases);
    monitoring::record_one(instrumentation::Kind::step, record);
  }

  uint64_t step() const { return step_; }
  uint64_t begun() const { return begun_; }  ///< when its batch began to be fetched

  double learning_rate = 0;
  std::optional<EvaluationLoss> evaluation;
  uint64_t last_seen = 0;  // of an evaluation, whose end nothing tells
  std::optional<torch::Device> device;

 private:
  static size_t index(Phase phase) { return static_cast<size_t>(phase); }

  // A checker is told all, when it happens. The monitor of a long run is told what belongs to some
  // of the steps; where it was told that a phase began, it is told that it ended.
  void mark(Phase phase, uint32_t split, uint64_t time) {
    const instrumentation::PhaseRecord record{.phase = phase, .split = split, .step = step_};
    recording::record_one(instrumentation::Kind::phase, record);
    if (!monitoring::enabled()) return;
    const bool begins = phase != Phase::none && phase != Phase::dropped;
    const bool told = begins && (index(phase) >= kStepPhases || monitoring::wants_details(step_));
    if (!told && !is_open_) return;
    auto shown = record;
    if (begins && !told) shown.phase = Phase::none;
    monitoring::record_one(instrumentation::Kind::phase, shown, time);
    is_open_ = told;
  }

  std::thread::id thread_;
  Phase phase_ = Phase::none;
  uint64_t since_ = 0;
  uint64_t step_ = 1;
  uint64_t begun_ = 0;
  std::array<uint64_t, kStepPhases> sums_{};
  bool is_open_ = false;  // what runs is in the monitor's log
};

Watch* watch = nullptr;  // leaked: seams are passed until the very end

// Null where there is nothing to do.
Watch* mine() {
  return watch != nullptr && watch->is_mine() && !instrumentation::Pause::lives() ? watch : nullptr;
}

void end_evaluation(Watch& now) {
  if (!now.is_in(Phase::evaluation)) return;
  now.enter(Phase::none, kUnknown, now.last_seen);
  if (monitoring::enabled()) now.evaluation->record(now.step() - 1);
}

// Also goes on with one.
void begin_evaluation(Watch& now, Split split) {
  if (now.is_in(Phase::evaluation) && now.evaluation->split() == split) return;
  end_evaluation(now);
  now.drop();
  now.enter(Phase::evaluation, static_cast<uint32_t>(split));
  now.evaluation.emplace(split);
  now.last_seen = monitoring::now();
  evidence::evaluation_begins();
}

}  // namespace

void begin() { watch = new Watch(std::this_thread::get_id()); }

void fetches(Split split) {
  Watch* now = mine();
  if (now == nullptr) return;
  if (split != Split::train || !torch::GradMode::is_enabled()) return begin_evaluation(*now, split);
  end_evaluation(*now);
  if (!now->is_in(Phase::none)) return;
  now->begin_step(now->step());
  now->enter(Phase::data, static_cast<uint32_t>(split));
}

void taken(torch::Device device, std::optional<Split> split) {
  Watch* now = mine();
  if (now == nullptr) return;
  if (now->device != device) {
    now->device = device;
    monitoring::record_text(instrumentation::Kind::device, device.str());
  }
  const bool trains = torch::GradMode::is_enabled() && split.value_or(Split::train) == Split::train;
  if (!trains) {
    if (split) begin_evaluation(*now, *split);
    return;
  }
  end_evaluation(*now);
  now->enter(Phase::forward);
  if (monitoring::enabled()) memory::forward_begins(device);
}

void evaluated(const Loss& loss, const std::vector<Metric>& metrics) {
  Watch* now = mine();
  if (now == nullptr || !now->is_in(Phase::evaluation)) return;
  if (monitoring::enabled()) now->evaluation->add(loss, metrics);
  now->last_seen = monitoring::now();
}

void evaluation_ends() {
  if (Watch* now = mine()) end_evaluation(*now);
}

void backward_begins() {
  Watch* now = mine();
  if (now == nullptr || !now->is_in(Phase::forward)) return;
  if (monitoring::enabled()) memory::forward_ended(*now->device);
  now->enter(Phase::backward);
}

void optimizer_begins(const torch::optim::Optimizer& optimizer) {
  Watch* now = mine();
  if (now == nullptr) return;
  now->learning_rate = optimizer.param_groups().front().options().get_lr();
  if (monitoring::enabled()) {
    now->enter(Phase::none);  // looking takes its time
    memory::optimizer_begins(optimizer);
    record_gradient_sizes(optimizer, now->step());
  }
  now->enter(Phase::optimizer);
}

void optimizer_ends() {
  if (Watch* now = mine()) now->enter(Phase::none);
}

void replay_begins(const torch::optim::Optimizer& optimizer) {
  Watch* now = mine();
  if (now == nullptr) return;
  now->learning_rate = optimizer.param_groups().front().options().get_lr();
  now->enter(Phase::none);
}

void step_ends(int64_t number, bool last, const Loss& loss) {
  const graph::ReplayedStep replayed{.number = static_cast<uint64_t>(number),
                                     .begun = watch != nullptr ? watch->begun() : 0,
                                     .targets = static_cast<uint64_t>(loss.count),
                                     .learning_rate = watch != nullptr ? watch->learning_rate : 0};
  auto& replays = graph::Replays::of_process();
  const bool is_replay = replays.wants_label();
  if (is_replay) replays.label(replayed);
  if (last) replays.finish();
  Watch* now = mine();
  if (now == nullptr) return;
  now->drop();
  if (!is_replay) now->end_step(replayed.number, replayed.targets);
  if (monitoring::enabled()) record_loss(number, loss);
  now->begin_step(static_cast<uint64_t>(number) + 1);
  if (last) return;  // the next begins when it fetches
  now->enter(Phase::data, static_cast<uint32_t>(Split::train));
}

void checkpoint_begins() {
  Watch* now = mine();
  if (now == nullptr) return;
  end_evaluation(*now);
  now->drop();
  now->enter(Phase::checkpoint);
}

void checkpoint_ends() {
  Watch* now = mine();
  if (now == nullptr) return;
  now->enter(Phase::none);
  now->begin_step(now->step());
  now->enter(Phase::data, static_cast<uint32_t>(Split::train));
}

}  // namespace tasks::phases
