#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace distributed_utils::detail {

/// SHA-256 (FIPS 180-4, section 6.2) of bytes that come in pieces. LibTorch ships SHA-1 of whole
/// strings only; and with this one, `sha256sum` checks by hand what a manifest says.
class Sha256 {
 public:
  void update(const void* data, size_t size);

  /// 64 lower-case hexadecimal digits. To be called once, at the end.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

std::string sha256(std::string_view text);

}  // namespace distributed_utils::detail
