#pragma once
/// Where a rank's parameters lie in the whole model, found by their values: an element is known by
/// its 64 bits, as make_model drew them, or nearly so where it was computed. Names and layouts that
/// a program claims play no part, so this holds for whole models, shards and slices alike.
#include <map>
#include <optional>
#include <vector>

#include "deviation.hpp"
#include "evidence/tensors.hpp"

namespace replay {

class Fingerprints {
 public:
  /// whole: the values of the whole model before the first step, one tensor after the other.
  /// apart: so far may a value be from its own, relative to the largest; 0: not at all.
  explicit Fingerprints(const Flat& whole, double apart = 0);

  /// The place in the whole model of each of these values. Where several elements have one value,
  /// as constants have, the one that follows on the place before. Nothing if one is not there.
  std::optional<std::vector<size_t>> places(const Flat& values) const;

  /// All places of the value that is nearest to this one; null if none is near enough.
  const std::vector<size_t>* nearest(double value) const;

 private:
  double apart_;
  std::map<double, std::vector<size_t>> places_;  // by value
};

/// How far values that were computed again may be from what a rank has, relative to the largest.
constexpr double kComputed = 1e-12;

/// The values of a recorded model in the order of these parameters; nothing if one is missing.
std::optional<Flat> in_order(const std::vector<checker::TensorSeen>& model,
                             const std::vector<checker::TensorSeen>& order);

}  // namespace replay
