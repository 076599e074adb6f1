#include "evaluation_loss.hpp"

#include "instrumentation/monitoring.hpp"

namespace tasks {

namespace monitoring = instrumentation::monitoring;

namespace {

const char* name_of(Split split) {
  if (split == Split::train) return "training";
  return split == Split::validation ? "validation" : "test";
}

}  // namespace

void EvaluationLoss::add(const Loss& loss) {
  const auto sum = loss.sum.detach().to(at::kDouble);
  sum_ = sum_.defined() ? sum_ + sum : sum;
  count_ += loss.count;
}

void EvaluationLoss::record(uint64_t steps) const {
  if (count_ == 0) return;
  const instrumentation::EvaluationRecord record{
      .step = steps, .count = static_cast<uint64_t>(count_), .sum = sum_.item<double>()};
  monitoring::record_named(instrumentation::Kind::evaluation, record, name_of(split_));
}

}  // namespace tasks
