#include "drawn.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tasks/keyed_random.hpp"

namespace tasks::signals {
namespace {

// A label stays with this probability; else it is one of the others, each as likely.
constexpr double kStays = 0.85;
constexpr double kNoise = 0.7;

using Chances = std::array<double, kLabels>;

double level(int64_t label) { return static_cast<double>(label - 1); }

double moves(size_t from, size_t to) { return from == to ? kStays : (1 - kStays) / (kLabels - 1); }

// How likely each label makes this value, but for a common factor.
Chances likelihoods(double value) {
  Chances chances{};
  for (size_t label = 0; label < kLabels; ++label) {
    const double off = (value - level(static_cast<int64_t>(label))) / kNoise;
    chances[label] = std::exp(-off * off / 2);
  }
  return chances;
}

Chances normalised(Chances chances) {
  double sum = 0;
  for (const double chance : chances) sum += chance;
  for (double& chance : chances) chance /= sum;
  return chances;
}

// One moment on, or back: the chain looks the same in both directions.
Chances one_on(const Chances& chances) {
  Chances next{};
  for (size_t from = 0; from < kLabels; ++from) {
    for (size_t to = 0; to < kLabels; ++to) next[to] += chances[from] * moves(from, to);
  }
  return next;
}

Chances product(const Chances& first, const Chances& second) {
  Chances both{};
  for (size_t label = 0; label < kLabels; ++label) both[label] = first[label] * second[label];
  return normalised(both);
}

}  // namespace

Signal draw(uint64_t seed, uint64_t number, int64_t length) {
  KeyedRandom random(seed, number, 0);
  const int64_t least = std::max<int64_t>(length / 8, 1);
  const int64_t moments = least + random.below(length - least + 1);
  Signal signal;
  int64_t label = random.below(kLabels);
  for (int64_t t = 0; t < moments; ++t) {
    if (t > 0 && random.uniform() >= kStays) label = (label + 1 + random.below(2)) % kLabels;
    signal.labels.push_back(label);
    signal.values.push_back(level(label) + kNoise * random.normal());
  }
  return signal;
}

double least_loss(const Signal& signal) {
  const size_t moments = signal.values.size();
  std::vector<Chances> before(moments);  // of each label, given the values up to this one
  Chances chances{};
  chances.fill(1.0 / kLabels);
  for (size_t t = 0; t < moments; ++t) {
    if (t > 0) chances = one_on(before[t - 1]);
    before[t] = product(chances, likelihoods(signal.values[t]));
  }
  double loss = 0;
  Chances after{};  // how likely each label makes the values behind this one
  after.fill(1);
  for (size_t t = moments; t-- > 0;) {
    const auto given_all = product(before[t], after);
    loss -= std::log(given_all.at(static_cast<size_t>(signal.labels[t])));
    after = one_on(product(after, likelihoods(signal.values[t])));
  }
  return loss;
}

}  // namespace tasks::signals
