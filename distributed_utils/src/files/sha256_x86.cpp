#include "files/sha256.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace distributed_utils::detail {

#ifdef __x86_64__
namespace {

__attribute__((target("sha,sse4.1"))) __m128i load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

/// As in Intel's SHA Extensions (Gulley et al., 2013): the state is kept as ABEF and CDGH, and four
/// rounds are made at a time.
__attribute__((target("sha,sse4.1"))) void blocks_x86(Sha256State& state, const uint8_t* bytes,
                                                      size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load(state.data()), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words
    for (size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(bytes + 16 * i), big_endian);
#pragma GCC unroll 16  // so that w stays in registers
    for (size_t i = 0; i < 16; ++i) {
      __m128i& oldest = w[i % 4];
      const __m128i& newest = w[(i + 3) % 4];
      const __m128i sum = _mm_add_epi32(oldest, load(kSha256Rounds.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      const __m128i seven_ago = _mm_alignr_epi8(newest, w[(i + 2) % 4], 4);
      const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, w[(i + 1) % 4]), seven_ago);
      oldest = _mm_sha256msg2_epu32(next, newest);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  // Leaf 7: every processor that has the SHA instructions has SSE 4.1.
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx >> 29 & 1) != 0;
}

}  // namespace

Sha256Blocks sha256_blocks_x86() {
  static const bool has = has_sha();
  return has ? blocks_x86 : nullptr;
}
#else
Sha256Blocks sha256_blocks_x86() { return nullptr; }
#endif

}  // namespace distributed_utils::detail
