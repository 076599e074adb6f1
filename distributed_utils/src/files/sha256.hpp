#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace distributed_utils::detail {

using Sha256State = std::array<uint32_t, 8>;

/// Mixes whole blocks, of 64 bytes each, into the state.
using Sha256Blocks = void (*)(Sha256State& state, const uint8_t* bytes, size_t count);

/// For every processor.
void sha256_blocks(Sha256State& state, const uint8_t* bytes, size_t count);

/// With the SHA instructions of x86, several times as fast; null if this processor has none.
Sha256Blocks sha256_blocks_x86();

/// SHA-256 (FIPS 180-4, section 6.2) of bytes that come in pieces. LibTorch ships SHA-1 of whole
/// strings only; and with this one, `sha256sum` checks by hand what a manifest says.
class Sha256 {
 public:
  Sha256() : Sha256(sha256_blocks_x86() ? sha256_blocks_x86() : sha256_blocks) {}
  explicit Sha256(Sha256Blocks blocks) : blocks_(blocks) {}

  void update(const void* data, size_t size);

  /// 64 lower-case hexadecimal digits. To be called once, at the end.
  std::string hex();

 private:
  Sha256Blocks blocks_;
  Sha256State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
inline constexpr std::array<uint32_t, 64> kSha256Rounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::string sha256(std::string_view text);

}  // namespace distributed_utils::detail
