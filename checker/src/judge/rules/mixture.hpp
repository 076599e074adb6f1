#pragma once
/// What the numbers that an exercise shows are made of. The checker cannot know what a program
/// meant, but it can tell whose numbers are in a result and how often: "rank 0 + 2 x rank 1".
#include <optional>
#include <string>
#include <vector>

namespace checker::rules {

using Numbers = std::vector<double>;

/// Whether these are the same numbers in the same order. tolerance: relative to what is above 1.
bool equal(const Numbers& a, const Numbers& b, double tolerance);

/// How often each rank's numbers are in the sum `got`, up to three times: "rank 0 + 2 x rank 1".
/// Nothing if it is not such a sum, or if it is a single number, which may be one by chance.
/// of_ranks: each as long as got.
std::optional<std::string> mixture(const Numbers& got, const std::vector<Numbers>& of_ranks,
                                   double tolerance);

/// So many times the expected numbers is `got`, as a fraction of numbers up to 8: "4/3", "2".
std::optional<std::string> factor(const Numbers& got, const Numbers& expected, double tolerance);

/// Whether they are the same numbers in another order.
bool reordered(const Numbers& got, const Numbers& expected, double tolerance);

}  // namespace checker::rules
