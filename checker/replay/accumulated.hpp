#pragma once
/// The gradients of the batches that lead to one optimizer step. Most steps have one batch.
#include <vector>

#include "deviation.hpp"
#include "evidence/run.hpp"

namespace replay {

/// Ways in which programs make one gradient of several batches.
enum class Accumulation {
  last,     ///< only the last batch counts: what came before was cleared
  equally,  ///< the mean of the batches' gradients
  by_count  ///< the mean over all targets
};
constexpr Accumulation kWaysToAccumulate[] = {Accumulation::last, Accumulation::equally,
                                              Accumulation::by_count};

class AccumulatedGradients {
 public:
  /// gradients: of the mean loss of a batch with so many targets.
  void add(Flat gradients, double count);
  bool empty() const { return parts_.empty(); }
  Flat added_up(Accumulation way) const;
  /// Targets of the batches that count.
  double count(Accumulation way) const;

 private:
  std::vector<Flat> parts_;
  std::vector<double> counts_;
};

/// The batches that led to each of the rank's optimizer steps.
std::vector<std::vector<const checker::BatchSeen*>> batches_of_steps(const checker::RankSeen& rank);

}  // namespace replay
