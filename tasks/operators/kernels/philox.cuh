#pragma once
/// Random bits that a kernel can make again, and dropout of them: Philox 4x32 with ten rounds
/// (Salmon et al. 2011, https://doi.org/10.1145/2063384.2063405), torch's own generator on GPUs.
#include <cstdint>

#include "kernels.hpp"

namespace tasks::operators::kernels {

struct PhiloxBits {
  uint32_t values[4];
};

/// The bits of one subsequence at the generator's offset.
__device__ inline PhiloxBits philox(const Random& random, uint64_t subsequence) {
  const bool in_graph = random.offset_at != nullptr;
  const uint64_t seed = in_graph ? static_cast<uint64_t>(*random.seed_at) : random.seed;
  const uint64_t offset =
      (random.offset + (in_graph ? static_cast<uint64_t>(*random.offset_at) : 0)) / 4;
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxBits c{{static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, c.values[0]), low0 = 0xD2511F53u * c.values[0];
    const uint32_t high1 = __umulhi(0xCD9E8D57u, c.values[2]), low1 = 0xCD9E8D57u * c.values[2];
    c = {{high1 ^ c.values[1] ^ key0, low1, high0 ^ c.values[3] ^ key1, low0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// What four elements from `element` on are multiplied by: 0, or 1 / (1 - dropout).
__device__ inline void dropout_factors(const Random& random, double dropout, int64_t element,
                                       float (&result)[4]) {
  for (float& factor : result) factor = 1;
  if (dropout == 0) return;
  const auto bits = philox(random, static_cast<uint64_t>(element) / 4);
  const auto probability = static_cast<float>(dropout);
  for (int j = 0; j < 4; ++j) {
    const float uniform = static_cast<float>(bits.values[j] >> 8) * 0x1p-24f;
    result[j] = uniform < probability ? 0 : 1 / (1 - probability);
  }
}

}  // namespace tasks::operators::kernels
