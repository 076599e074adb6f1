#include "evaluation_loss.hpp"

#include <string>

#include "distributed_utils/monitoring.hpp"

namespace tasks {

namespace monitoring = distributed_utils::monitoring;

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

void EvaluationLoss::record(uint64_t step) const {
  if (count_ == 0) return;
  const monitoring::EvaluationRecord record{
      .step = step - 1, .count = static_cast<uint64_t>(count_), .sum = sum_.item<double>()};
  std::string payload(reinterpret_cast<const char*>(&record), sizeof record);
  payload += name_of(split_);
  monitoring::record_text(monitoring::Kind::evaluation, payload);
}

}  // namespace tasks
