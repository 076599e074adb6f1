#include "table.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace tasks::corpus {

Table::Table(std::vector<uint64_t> weights) : weights_(std::move(weights)) {
  total_ = std::accumulate(weights_.begin(), weights_.end(), uint64_t{0});
}

Table Table::zipf(int size) {
  // Whole numbers, so that drawing needs no rounding; the numerator has many divisors.
  constexpr uint64_t numerator = 720720;
  std::vector<uint64_t> weights;
  for (int rank = 0; rank < size; ++rank) {
    weights.push_back(numerator / (static_cast<uint64_t>(rank) + 3));
  }
  return Table(std::move(weights));
}

Table Table::chance(int percent) {
  return Table({static_cast<uint64_t>(100 - percent), static_cast<uint64_t>(percent)});
}

int Table::draw(Bits& bits) const {
  uint64_t point = bits.below(total_);
  int outcome = 0;
  while (point >= weights_[static_cast<size_t>(outcome)]) {
    point -= weights_[static_cast<size_t>(outcome)];
    ++outcome;
  }
  return outcome;
}

double Table::probability(int outcome) const {
  return double(weights_.at(static_cast<size_t>(outcome))) / double(total_);
}

double Table::log_probability(int outcome) const { return std::log(probability(outcome)); }

double Table::entropy() const {
  double entropy = 0;
  for (int outcome = 0; outcome < size(); ++outcome) {
    entropy -= probability(outcome) * log_probability(outcome);
  }
  return entropy;
}

}  // namespace tasks::corpus
