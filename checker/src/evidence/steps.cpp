#include "evidence/steps.hpp"

#include <algorithm>

namespace checker {

// The model that the first optimizer steps is the one that is trained.
void StepFinder::stepping(const Event& event) {
  const auto head = event.head<instrumentation::SteppingRecord>();
  if (!head) return;
  if (!pieces_.empty()) return step_pieces(head->model);
  if (rank_.parameters.empty()) begin_training(head->model);
  stepped_.assign(rank_.parameters.size(), false);
  foreign_ = head->model != trained_;
  for (const auto place : event.numbers<uint64_t>(sizeof *head)) {
    foreign_ = foreign_ || place >= stepped_.size();
    if (!foreign_) stepped_[place] = true;
  }
  // One without a name: the replay will say so.
  if (foreign_ && (rank_.parameters.empty() || !rank_.parameters.back().name.empty()))
    rank_.parameters.emplace_back();
}

// All of them step. Another optimizer's are foreign to the first one's.
void StepFinder::step_pieces(uint64_t model) {
  auto pieces = std::exchange(pieces_, {});
  if (rank_.parameters.empty()) {
    trained_ = model;
    rank_.in_pieces = true;
    rank_.parameters = pieces;
  }
  const auto sizes_agree = [](const TensorSeen& a, const TensorSeen& b) {
    return a.sizes == b.sizes && a.scalar_type == b.scalar_type;
  };
  foreign_ = !rank_.in_pieces || !std::ranges::equal(pieces, rank_.parameters, sizes_agree);
  stepped_.assign(rank_.parameters.size(), true);
}

// Pieces do not tell which model they belong to, but their first values do. Of two that have as
// many of them, the later one.
void StepFinder::choose_model(const std::vector<double>& pieces) {
  size_t most = 0;
  for (const auto& model : models_) {
    std::vector<double> own;
    for (const auto& tensor : model) {
      if (!tensor.buffer) own.insert(own.end(), tensor.values.begin(), tensor.values.end());
    }
    std::ranges::sort(own);
    const size_t found = std::ranges::count_if(
        pieces, [&](double value) { return std::ranges::binary_search(own, value); });
    if (found < most) continue;
    most = found;
    rank_.model = model;
  }
}

void StepFinder::begin_training(uint64_t model) {
  trained_ = model;
  if (model >= models_.size()) return;
  rank_.model = models_[model];
  for (auto tensor : rank_.model) {
    tensor.values.clear();
    if (!tensor.buffer) rank_.parameters.push_back(std::move(tensor));
  }
}

// A step begins, unless another optimizer goes on with it.
void StepFinder::values(const Event& event) {
  if (foreign_ || rank_.parameters.empty()) return;
  more_of_a_step_ = goes_on();
  if (more_of_a_step_) return;
  StepSeen step;
  step.values = in_doubles(event);
  if (rank_.in_pieces && rank_.steps.empty()) choose_model(step.values);
  step.stepped.assign(rank_.parameters.size(), false);
  rank_.steps.push_back(std::move(step));
}

bool StepFinder::goes_on() const {
  if (rank_.steps.empty()) return false;
  for (size_t i = used_; i < losses_.size(); ++i) {
    if (losses_[i].with_gradients) return false;
  }
  const auto& before = rank_.steps.back().stepped;
  for (size_t i = 0; i < std::min(before.size(), stepped_.size()); ++i) {
    if (before[i] && stepped_[i]) return false;
  }
  return true;
}

void StepFinder::gradients(const Event& event, size_t place) {
  if (foreign_ || rank_.steps.empty()) return;
  auto& step = rank_.steps.back();
  const auto seen = in_doubles(event);
  if (seen.empty()) return;
  step.gradients.resize(seen.size());
  size_t from = 0;
  for (size_t i = 0; i < stepped_.size(); from += rank_.parameters[i++].elements) {
    if (!stepped_[i]) continue;
    std::copy_n(seen.begin() + static_cast<std::ptrdiff_t>(from),
                std::min<size_t>(rank_.parameters[i].elements, seen.size() - from),
                step.gradients.begin() + static_cast<std::ptrdiff_t>(from));
    step.stepped[i] = true;
  }
  step.learning_rates.insert(step.learning_rates.end(), learning_rates_.begin(),
                             learning_rates_.end());
  step.event = place;
  if (!more_of_a_step_) leads_to(rank_.steps.size() - 1);
}

// The losses since the step before whose gradients were computed; or the last, if none were.
void StepFinder::leads_to(size_t step) {
  BatchSeen* last = nullptr;
  bool any = false;
  for (; used_ < losses_.size(); ++used_) {
    auto& batch = losses_[used_];
    if (batch.with_gradients) last = &batch;
    if (!batch.backward) continue;
    batch.step = step;
    any = true;
  }
  if (last && !any) last->step = step;
}

// Of all parameters of the model, each in its own type.
std::vector<double> StepFinder::in_doubles(const Event& event) {
  auto read = read_values(event.payload, rank_.parameters);
  if (!read && !rank_.unread) rank_.unread = "the values of parameters";
  return std::move(read).value_or(std::vector<double>());
}

void StepFinder::end() {
  if (rank_.model.empty() && !models_.empty()) rank_.model = std::move(models_.back());
}

}  // namespace checker
