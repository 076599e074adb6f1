#pragma once
/// Signals with a known best score: a hidden Markov chain, seen through noise.
#include <cstdint>
#include <vector>

namespace tasks::signals {

constexpr int64_t kLabels = 3;

struct Signal {
  std::vector<double> values;   ///< one a moment
  std::vector<int64_t> labels;  ///< of each moment, in [0, kLabels)
};

/// The signal of this number: the same for the same seed. It has from 1/8 of `length` moments to
/// all of them, each length as likely.
Signal draw(uint64_t seed, uint64_t number, int64_t length);

/// -log of the probability of the signal's labels, each given all of its values, summed: no other
/// guess costs less on average. By the forward-backward algorithm (Rabiner 1989,
/// https://doi.org/10.1109/5.18626, section III.B).
double least_loss(const Signal& signal);

}  // namespace tasks::signals
