#pragma once
/// FNV-1a with 64 bits, http://www.isthe.com/chongo/tech/comp/fnv: a fast hash that tells apart
/// what differs by accident. It resists no attacker. Needs no library, so that the checker has it
/// too.
#include <cstdint>
#include <string_view>

namespace instrumentation {

/// The hash of nothing.
constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;

/// Takes one more part into the hash: a byte, as FNV-1a is defined, or a wider word.
constexpr uint64_t fnv1a_step(uint64_t hash, uint64_t part) {
  return (hash ^ part) * 0x100000001b3;
}

/// The hash of these bytes.
constexpr uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = kFnvBasis;
  for (const char byte : bytes) hash = fnv1a_step(hash, static_cast<unsigned char>(byte));
  return hash;
}

}  // namespace instrumentation
