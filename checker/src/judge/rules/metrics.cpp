#include <algorithm>
#include <cmath>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// The sum and the count of each metric over a pass of all ranks, one after the other.
std::vector<double> totals_of(const std::vector<const Pass*>& passes) {
  std::vector<double> totals;
  for (const auto* pass : passes) {
    for (const auto& batch : pass->batches) {
      totals.resize(std::max(totals.size(), batch.metrics.size()));
      for (size_t i = 0; i < batch.metrics.size(); ++i) totals[i] += batch.metrics[i];
    }
  }
  return totals;
}

bool near(double got, double expected, double tolerance) {
  return std::abs(got - expected) <= tolerance * std::max(std::abs(expected), tolerance);
}

// A metric is the ratio of its totals, or the root of that: which of both the task knows.
bool fits(double got, double ratio, double tolerance) {
  return near(got, ratio, tolerance) || near(got, std::sqrt(ratio), tolerance);
}

// The metrics that some report of a rank has, of those that an evaluation came to.
bool reported(const RankSeen& rank, size_t metric, double ratio, double tolerance) {
  return std::ranges::any_of(rank.reports, [&](const ReportSeen& report) {
    return metric < report.metrics.size() && fits(report.metrics[metric], ratio, tolerance);
  });
}

}  // namespace

void metrics(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::all_reduce) || context.run().ranks.empty()) return;
  const auto& names = context.run().ranks.front().metrics;
  const size_t speakers = context.expects(feature::print0) ? 1 : context.world();
  Symptom symptom{.id = "metric_not_global", .values = context.values()};
  const auto evaluations = whole_evaluations(context, Split::validation);
  for (size_t epoch = 0; epoch < evaluations.size(); ++epoch) {
    const auto totals = totals_of(evaluations[epoch]);
    for (size_t metric = 0; metric < names.size() && 2 * metric + 1 < totals.size(); ++metric) {
      const double ratio = totals[2 * metric] / totals[2 * metric + 1];
      for (size_t rank = 0; rank < speakers; ++rank) {
        const auto& seen = context.run().ranks[rank];
        if (seen.reports.empty() || reported(seen, metric, ratio, context.loss_tolerance()))
          continue;
        symptom.evidence.push_back({"metric",
                                    {{"rank", rank},
                                     {"metric", names[metric]},
                                     {"epoch", epoch + 1},
                                     {"ratio", digits(ratio)}}});
      }
    }
  }
  if (symptom.evidence.empty()) return;
  constexpr size_t kLines = 4;
  if (symptom.evidence.size() > kLines) symptom.evidence.resize(kLines);
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
