#include "arithmetic.hpp"

#include <algorithm>
#include <cmath>

namespace replay {

using checker::TensorSeen;

double finite(double value) { return std::isfinite(value) ? value : 1e300; }

bool in_range(const std::vector<uint64_t>& ids, size_t size) {
  return std::ranges::all_of(ids, [&](uint64_t id) { return id < size; });
}

Flat plus(Flat a, const Flat& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] += b[i];
  return a;
}

Flat scaled(Flat values, double factor) {
  for (auto& value : values) value *= factor;
  return values;
}

double rates_deviation(const Flat& got, const Flat& expected) {
  if (expected.empty() || got.size() % expected.size() != 0) return finite(NAN);
  Flat all;
  while (all.size() < got.size()) all.insert(all.end(), expected.begin(), expected.end());
  return finite(deviation(got, all));
}

double common_factor(const Flat& got, const Flat& expected) {
  if (got.empty() || expected.empty() || expected[0] == 0) return 0;
  const double factor = got[0] / expected[0];
  return rates_deviation(got, scaled(expected, factor)) < kSame ? factor : 0;
}

Flat weighted_mean(const std::vector<Flat>& parts, const std::vector<double>& weights) {
  double all = 0;
  Flat mean(parts.front().size(), 0.0);
  for (size_t i = 0; i < parts.size(); ++i) {
    mean = plus(std::move(mean), scaled(parts[i], weights[i]));
    all += weights[i];
  }
  return scaled(std::move(mean), 1 / all);
}

double multiple_of(const Flat& got, const Flat& wanted) {
  if (got.size() != wanted.size()) return 0;
  double product = 0, square = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    product += got[i] * wanted[i];
    square += wanted[i] * wanted[i];
  }
  if (square == 0 || product == 0) return 0;
  const double factor = product / square;
  return deviation(got, scaled(wanted, factor)) < kSame ? factor : 0;
}

Flat multiples_of(const Flat& got, const Flat& wanted, const std::vector<TensorSeen>& parameters) {
  Flat multiples;
  auto from = got.begin();
  auto from_wanted = wanted.begin();
  for (const auto& parameter : parameters) {
    const auto size = static_cast<std::ptrdiff_t>(parameter.elements);
    if (got.end() - from < size || wanted.end() - from_wanted < size) return {};
    const Flat part(from, from + size), wanted_part(from_wanted, from_wanted + size);
    from += size;
    from_wanted += size;
    const bool none = std::ranges::all_of(wanted_part, [](double g) { return g == 0; });
    if (size < 2 || none) continue;
    multiples.push_back(multiple_of(part, wanted_part));
    if (multiples.back() == 0) return {};
  }
  return multiples;
}

void keep_stepped(Flat& gradients, const std::vector<bool>& stepped,
                  const std::vector<TensorSeen>& parameters) {
  size_t from = 0;
  for (size_t i = 0; i < std::min(stepped.size(), parameters.size()); ++i) {
    const size_t end = std::min(from + parameters[i].elements, gradients.size());
    if (!stepped[i]) std::fill(gradients.begin() + from, gradients.begin() + end, 0.0);
    from = end;
  }
}

std::vector<std::string> names_apart(const Flat& got, const Flat& mean,
                                     const std::vector<TensorSeen>& parameters) {
  std::vector<std::string> names;
  double scale = 0;
  for (const double value : mean) scale = std::max(scale, std::abs(value));
  size_t from = 0;
  for (const auto& parameter : parameters) {
    for (size_t i = from; i < std::min({from + parameter.elements, got.size(), mean.size()}); ++i) {
      if (std::abs(got[i] - mean[i]) > 1e-7 * scale) {
        names.push_back(parameter.name);
        break;
      }
    }
    from += parameter.elements;
  }
  return names;
}

std::vector<size_t> ranks_averaged(const Flat& got, const std::vector<Flat>& local, size_t own) {
  for (size_t chosen = 1; chosen + 1 < size_t{1} << local.size(); ++chosen) {
    if ((chosen >> own & 1) == 0) continue;
    std::vector<size_t> ranks;
    Flat sum(got.size(), 0.0);
    for (size_t rank = 0; rank < local.size(); ++rank) {
      if ((chosen >> rank & 1) == 0) continue;
      ranks.push_back(rank);
      sum = plus(std::move(sum), local[rank]);
    }
    const Flat mean = scaled(std::move(sum), 1 / static_cast<double>(ranks.size()));
    if (deviation(got, mean) < kSame) return ranks;
  }
  return {};
}

}  // namespace replay
