#include "accumulated.hpp"

#include <cstddef>
#include <numeric>

namespace replay {

void AccumulatedGradients::add(Flat gradients, double count) {
  parts_.push_back(std::move(gradients));
  counts_.push_back(count);
}

Flat AccumulatedGradients::added_up(Accumulation way) const {
  if (way == Accumulation::last || parts_.size() == 1) return parts_.back();
  const double all = std::accumulate(counts_.begin(), counts_.end(), 0.0);
  Flat sum(parts_.back().size(), 0.0);
  for (size_t part = 0; part < parts_.size(); ++part) {
    const double weight = way == Accumulation::by_count ? counts_[part] / all
                                                        : 1 / static_cast<double>(parts_.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * parts_[part][i];
  }
  return sum;
}

double AccumulatedGradients::count(Accumulation way) const {
  if (way == Accumulation::last) return counts_.back();
  return std::accumulate(counts_.begin(), counts_.end(), 0.0);
}

std::vector<std::vector<const checker::BatchSeen*>> batches_of_steps(
    const checker::RankSeen& rank) {
  std::vector<std::vector<const checker::BatchSeen*>> found(rank.steps.size());
  for (const auto& pass : rank.passes) {
    for (const auto& batch : pass.batches) {
      if (batch.step && *batch.step < found.size()) found[*batch.step].push_back(&batch);
    }
  }
  return found;
}

}  // namespace replay
