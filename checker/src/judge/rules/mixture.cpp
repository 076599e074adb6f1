#include "judge/rules/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace checker::rules {

namespace {

constexpr int kMostTimes = 3, kLargest = 8;

std::string in_words(const std::vector<int>& times) {
  std::string words;
  size_t ranks = 0;
  for (size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank] == 0) continue;
    words += ++ranks == 1 ? "" : " + ";
    words += (times[rank] > 1 ? std::to_string(times[rank]) + " x " : "") + "rank " +
             std::to_string(rank);
  }
  return words + (ranks == 1 ? " alone" : "");
}

// The next of all ways to choose 0 to kMostTimes for each rank; false after the last.
bool next(std::vector<int>& times) {
  for (auto& time : times) {
    if (++time <= kMostTimes) return true;
    time = 0;
  }
  return false;
}

}  // namespace

bool equal(const Numbers& a, const Numbers& b, double tolerance) {
  return std::ranges::equal(a, b, [&](double x, double y) {
    return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
  });
}

std::optional<std::string> mixture(const Numbers& got, const std::vector<Numbers>& of_ranks,
                                   double tolerance) {
  if (got.size() < 2) return std::nullopt;
  std::vector<int> times(of_ranks.size());
  while (next(times)) {
    Numbers sum(got.size());
    for (size_t rank = 0; rank < times.size(); ++rank) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += times[rank] * of_ranks[rank].at(i);
    }
    if (equal(got, sum, tolerance)) return in_words(times);
  }
  return std::nullopt;
}

std::optional<std::string> factor(const Numbers& got, const Numbers& expected, double tolerance) {
  for (int below = 1; below <= kLargest; ++below) {
    for (int above = 1; above <= kLargest; ++above) {
      if (above == below || std::gcd(above, below) != 1) continue;
      auto multiple = expected;
      for (auto& number : multiple) number = number * above / below;
      if (!equal(got, multiple, tolerance)) continue;
      return std::to_string(above) + (below == 1 ? "" : "/" + std::to_string(below));
    }
  }
  return std::nullopt;
}

bool reordered(const Numbers& got, const Numbers& expected, double tolerance) {
  auto a = got, b = expected;
  std::ranges::sort(a);
  std::ranges::sort(b);
  return equal(a, b, tolerance);
}

}  // namespace checker::rules
