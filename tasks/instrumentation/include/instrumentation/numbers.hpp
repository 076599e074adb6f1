#pragma once
/// The numbers that the ranks of an exercise have. Whoever knows the seed knows them: the checker
/// draws another one for every run.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "instrumentation/fnv1a.hpp"

namespace instrumentation {

/// The variable that holds the seed.
constexpr const char* kNumbersSeed = "WORLDSIZE_NUMBERS";

/// Whole numbers of two digits.
inline std::vector<double> numbers_of_rank(uint64_t seed, uint64_t rank, size_t count) {
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i) {
    const auto hash = fnv1a_step(fnv1a_step(fnv1a_step(kFnvBasis, seed), rank), i);
    // The upper bits depend on all parts.
    numbers.push_back(static_cast<double>(10 + (hash ^ hash >> 29) % 65521 % 90));
  }
  return numbers;
}

}  // namespace instrumentation
