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

void EvaluationLoss::add(const Loss& loss, const std::vector<Metric>& metrics) {
  const auto sum = loss.sum.detach().to(at::kDouble);
  sum_ = sum_.defined() ? sum_ + sum : sum;
  count_ += loss.count;
  if (!loss.metrics.defined()) return;
  metrics_ = metrics;
  metric_sums_ = metric_sums_.defined() ? metric_sums_ + loss.metrics : loss.metrics.clone();
}

void EvaluationLoss::record(uint64_t steps) const {
  if (count_ == 0) return;
  const instrumentation::EvaluationRecord record{
      .step = steps, .count = static_cast<uint64_t>(count_), .sum = sum_.item<double>()};
  monitoring::record_named(instrumentation::Kind::evaluation, record, name_of(split_));
  if (!metric_sums_.defined()) return;
  const auto host = metric_sums_.to(at::kCPU).contiguous();
  const auto* values = host.const_data_ptr<double>();
  for (const auto& metric : metrics_) {
    const instrumentation::MeasuredRecord measured{
        .step = steps,
        .root = metric.value == Metric::Of::root_of_ratio ? 1U : 0U,
        .sum = values[0],
        .count = values[1]};
    monitoring::record_named(instrumentation::Kind::measured, measured,
                             std::string(name_of(split_)) + "/" + metric.name);
    values += 2;
  }
}

}  // namespace tasks
