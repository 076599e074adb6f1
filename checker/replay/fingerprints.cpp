#include "fingerprints.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace replay {

Fingerprints::Fingerprints(const Flat& whole) {
  for (size_t i = 0; i < whole.size(); ++i) {
    places_[std::bit_cast<uint64_t>(whole[i])].push_back(i);
  }
}

std::optional<std::vector<size_t>> Fingerprints::places(const Flat& values) const {
  std::vector<size_t> found;
  found.reserve(values.size());
  for (const double value : values) {
    const auto at = places_.find(std::bit_cast<uint64_t>(value));
    if (at == places_.end()) return std::nullopt;
    const auto& several = at->second;
    const size_t next = found.empty() ? 0 : found.back() + 1;
    const auto follows = std::ranges::lower_bound(several, next);
    found.push_back(follows == several.end() ? several.front() : *follows);
  }
  return found;
}

std::optional<Flat> in_order(const std::vector<checker::TensorSeen>& model,
                             const std::vector<checker::TensorSeen>& order) {
  Flat values;
  for (const auto& wanted : order) {
    const auto found = std::ranges::find(model, wanted.name, &checker::TensorSeen::name);
    if (found == model.end() || found->values.size() != wanted.elements) return std::nullopt;
    values.insert(values.end(), found->values.begin(), found->values.end());
  }
  return values;
}

double deviation_at(const Flat& got, const std::vector<size_t>& places, const Flat& whole) {
  if (got.size() != places.size()) return std::numeric_limits<double>::infinity();
  Flat wanted;
  wanted.reserve(places.size());
  for (const size_t place : places) wanted.push_back(whole.at(place));
  return deviation(got, wanted);
}

}  // namespace replay
