#pragma once
/// Compares results: bit by bit, or by their losses alone.
#include <span>
#include <string>
#include <vector>

#include "golden/results.hpp"

namespace checker::golden {

/// How far losses of machines with different keys may lie apart, relatively.
constexpr double kLossTolerance = 1e-6;

struct Comparison {
  std::vector<std::string> wrong;  ///< what differs, a line per rank
  double largest = 0;              ///< relative difference of two losses
};

/// Every bit must be equal.
Comparison compare_bits(const Results& wanted, const Results& found);

/// Losses must be equal within the tolerance, and the hashes are not looked at.
Comparison compare_losses(const Results& wanted, const Results& found);

/// The entry whose key is most like this one; null if there is none.
const Entry* most_like(std::span<const Entry> entries, const Key& key);

}  // namespace checker::golden
