#pragma once
/// Random numbers that belong to a key and to nothing else: not to the thread that draws them, nor
/// to what was drawn before. They are the same with every compiler and standard library.
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tasks {

/// SplitMix64 (Steele, Lea and Flood 2014, https://doi.org/10.1145/2660193.2660195), which starts
/// from a hash of the key.
class KeyedRandom {
 public:
  /// Three numbers of any meaning: seed, epoch and index of a sample, say.
  KeyedRandom(uint64_t first, uint64_t second, uint64_t third) {
    for (const uint64_t part : {first, second, third}) state_ = mixed(state_ + kGolden + part);
  }

  uint64_t bits() { return mixed(state_ += kGolden); }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double least, double most) { return least + (most - least) * uniform(); }
  /// Uniform in [0, bound), but for 2^-53; bound > 0.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(uniform() * static_cast<double>(bound));
  }
  /// Of mean 0 and variance 1, by Box and Muller's method.
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// About normal, of mean 0 and variance 1, and quick: the sum of four small whole numbers.
  double nearly_normal() {
    const uint64_t drawn = bits();
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>((drawn >> (16 * i)) & 0xffff);
    return (sum * 0x1p-16 - 2) * std::numbers::sqrt3;
  }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

  static uint64_t mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  uint64_t state_ = 0;
};

}  // namespace tasks
