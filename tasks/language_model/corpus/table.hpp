#pragma once
/// One choice of the grammar: outcomes with exact, rational probabilities.
#include <cstdint>
#include <vector>

#include "bits.hpp"

namespace tasks::corpus {

class Table {
 public:
  /// Probabilities proportional to the weights; each weight > 0.
  explicit Table(std::vector<uint64_t> weights);

  /// `size` outcomes, outcome r with a probability proportional to 1 / (r + 3): Zipf's law as
  /// Mandelbrot flattened it, so that the most frequent words do not outweigh all others.
  static Table zipf(int size);
  /// Outcome 1 with the probability percent / 100, else 0; 0 < percent < 100.
  static Table chance(int percent);

  int draw(Bits& bits) const;
  int size() const { return static_cast<int>(weights_.size()); }
  double probability(int outcome) const;
  double log_probability(int outcome) const;  ///< nats
  double entropy() const;                     ///< nats

 private:
  std::vector<uint64_t> weights_;
  uint64_t total_ = 0;
};

}  // namespace tasks::corpus
