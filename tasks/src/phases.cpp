#include "phases.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "distributed_utils/monitoring.hpp"
#include "evaluation_loss.hpp"
#include "gradient_sizes.hpp"
#include "memory_by_kind.hpp"
#include "step_losses.hpp"

namespace tasks::phases {

namespace monitoring = distributed_utils::monitoring;
using monitoring::Phase;

namespace {

// What the thread that trains does now, and what the step that runs has taken so far.
class Watch {
 public:
  explicit Watch(std::thread::id thread) : thread_(thread) {}

  bool is_mine() const { return std::this_thread::get_id() == thread_; }
  bool is_in(Phase phase) const { return phase_ == phase; }
  bool is_between() const { return !phase_; }

  // The phase that runs ends, at `end`, and is recorded; the next begins now.
  void enter(std::optional<Phase> next, std::optional<uint64_t> end = {}) {
    const uint64_t now = monitoring::now();
    if (phase_) count(end.value_or(now));
    phase_ = next;
    since_ = now;
  }

  // What ran was no phase after all: an epoch's end, say.
  void drop() { phase_.reset(); }

  // A step begins with its data.
  void begin_step(uint64_t step) {
    step_ = step;
    begun_ = monitoring::now();
    sums_ = {};
    monitoring::set_step(step);
    monitoring::collective_time();  // what came between steps belongs to none
    phase_ = Phase::data;
    since_ = begun_;
  }

  void end_step(uint64_t number, uint64_t targets) {
    const uint64_t now = monitoring::now();
    monitoring::StepRecord record{.step = number,
                                  .begin = begun_,
                                  .phases = {},
                                  .collectives = monitoring::collective_time(),
                                  .targets = targets,
                                  .learning_rate = learning_rate};
    std::copy(sums_.begin(), sums_.end(), record.phases);
    monitoring::record_one(monitoring::Kind::step, record, now);
    phase_.reset();
  }

  uint64_t step() const { return step_; }

  double learning_rate = 0;
  std::optional<EvaluationLoss> evaluation;
  uint64_t last_seen = 0;  // of an evaluation, whose end nothing tells
  std::optional<torch::Device> device;

 private:
  void count(uint64_t end) {
    const auto index = static_cast<size_t>(*phase_);
    if (index < sums_.size()) {
      sums_[index] += end - since_;
      if (!monitoring::wants_details(step_)) return;
    }
    const monitoring::SpanRecord record{
        .begin = since_, .step = step_, .phase = *phase_, .reserved = 0};
    monitoring::record_one(monitoring::Kind::span, record, end);
  }

  std::thread::id thread_;
  std::optional<Phase> phase_;
  uint64_t since_ = 0;
  uint64_t step_ = 1;
  uint64_t begun_ = 0;
  std::array<uint64_t, monitoring::kStepPhases> sums_{};
};

Watch* watch = nullptr;  // leaked: seams are passed until the very end

// Null where there is nothing to do.
Watch* mine() { return watch != nullptr && watch->is_mine() ? watch : nullptr; }

void end_evaluation(Watch& now) {
  if (!now.is_in(Phase::evaluation)) return;
  now.enter({}, now.last_seen);
  now.evaluation->record(now.step() - 1);
}

void begin_evaluation(Watch& now, Split split) {
  now.drop();
  now.enter(Phase::evaluation);
  now.evaluation.emplace(split);
  now.last_seen = monitoring::now();
}

}  // namespace

void begin() { watch = new Watch(std::this_thread::get_id()); }

void fetches(Split split) {
  Watch* now = mine();
  if (now == nullptr) return;
  if (split == Split::train && torch::GradMode::is_enabled()) {
    end_evaluation(*now);
    if (now->is_between()) now->begin_step(now->step());
  } else if (!now->is_in(Phase::evaluation) || now->evaluation->split() != split) {
    end_evaluation(*now);
    begin_evaluation(*now, split);
  }
}

void taken(torch::Device device) {
  Watch* now = mine();
  if (now == nullptr) return;
  if (now->device != device) {
    now->device = device;
    monitoring::record_text(monitoring::Kind::device, device.str());
  }
  if (!torch::GradMode::is_enabled()) return;
  end_evaluation(*now);
  now->enter(Phase::forward);
  memory::forward_begins(device);
}

void evaluated(const Loss& loss) {
  Watch* now = mine();
  if (now == nullptr || !now->is_in(Phase::evaluation)) return;
  now->evaluation->add(loss);
  now->last_seen = monitoring::now();
}

void evaluation_ends() {
  if (Watch* now = mine()) end_evaluation(*now);
}

void backward_begins() {
  Watch* now = mine();
  if (now == nullptr || !now->is_in(Phase::forward)) return;
  memory::forward_ended(*now->device);
  now->enter(Phase::backward);
}

void optimizer_begins(const torch::optim::Optimizer& optimizer) {
  Watch* now = mine();
  if (now == nullptr) return;
  now->learning_rate = optimizer.param_groups().front().options().get_lr();
  now->enter({});
  memory::optimizer_begins(optimizer);
  record_gradient_sizes(optimizer, now->step());
  now->enter(Phase::optimizer);
}

void optimizer_ends() {
  if (Watch* now = mine()) now->enter({});
}

void step_ends(int64_t number, bool last, const Loss& loss) {
  Watch* now = mine();
  if (now == nullptr) return;
  now->end_step(static_cast<uint64_t>(number), static_cast<uint64_t>(loss.count));
  record_loss(number, loss);
  now->begin_step(static_cast<uint64_t>(number) + 1);
  if (last) now->drop();  // the next begins when it fetches
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
  now->enter({});
  now->begin_step(now->step());
}

}  // namespace tasks::phases
