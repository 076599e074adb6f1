#include "fingerprints.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace replay {

Fingerprints::Fingerprints(const Flat& whole, double apart) {
  double largest = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (std::isnan(whole[i])) continue;  // it is like nothing, not even itself
    places_[whole[i]].push_back(i);
    largest = std::max(largest, std::abs(whole[i]));
  }
  apart_ = apart * largest;
}

const std::vector<size_t>* Fingerprints::nearest(double value) const {
  if (places_.empty() || std::isnan(value)) return nullptr;
  auto found = places_.lower_bound(value);
  if (found == places_.end()) --found;
  if (found != places_.begin() && found->first != value) {
    const auto before = std::prev(found);
    if (std::abs(before->first - value) < std::abs(found->first - value)) found = before;
  }
  return std::abs(found->first - value) <= apart_ ? &found->second : nullptr;
}

std::optional<std::vector<size_t>> Fingerprints::places(const Flat& values) const {
  std::vector<size_t> found;
  found.reserve(values.size());
  for (const double value : values) {
    const auto* at = nearest(value);
    if (!at) return std::nullopt;
    const auto& several = *at;
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

}  // namespace replay
