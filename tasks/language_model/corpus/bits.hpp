#pragma once
/// Random numbers that are the same with every compiler and standard library, which those of
/// std::*_distribution are not.
#include <cstdint>
#include <random>

namespace tasks::corpus {

class Bits {
 public:
  explicit Bits(uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, bound), exactly: what would favour small numbers is thrown away. bound > 0.
  uint64_t below(uint64_t bound) {
    const uint64_t unfair = (UINT64_MAX % bound + 1) % bound;  // 2^64 mod bound
    uint64_t bits = engine_();
    while (bits > UINT64_MAX - unfair) bits = engine_();
    return bits % bound;
  }

 private:
  std::mt19937_64 engine_;  // the standard fixes its output
};

}  // namespace tasks::corpus
