#pragma once
/// The file in which a rank keeps what it did: one format, which the checker and the monitor read.
///
/// A Header, then records, each a RecordHeader and `size` bytes, padded to kAlignment. The file
/// grows by chunks of kChunk bytes. A record lies in one chunk, or begins where a chunk begins; so
/// a reader that meets damage goes on at the next chunk. The end of a chunk that holds no record is
/// padding: a record of that kind, or less than a RecordHeader. Numbers are in the machine's own
/// byte order, times are nanoseconds of CLOCK_MONOTONIC: comparable between ranks of one machine.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "instrumentation/events.hpp"
#include "instrumentation/fnv1a.hpp"

namespace instrumentation {

constexpr uint64_t kMagic = 0x33474f4c534c5757;  // "WWLSLOG3": of format 3
constexpr uint64_t kAlignment = 8;
constexpr uint64_t kChunk = 256 << 10;

/// What the names of monitoring's logs end with.
constexpr const char* kMonitorExtension = ".monitor";

/// A number that is not known.
constexpr uint32_t kUnknown = UINT32_MAX;

struct Header {
  uint64_t magic;
  uint64_t run;          ///< the same on all ranks of a run
  int64_t wall;          ///< CLOCK_REALTIME at the start, nanoseconds
  uint64_t nanoseconds;  ///< CLOCK_MONOTONIC at the same moment
  uint32_t rank;         ///< as the launcher says
  uint32_t local_rank;
  uint32_t world_size;
  uint32_t node;     ///< as the launcher says, or kUnknown
  uint32_t process;  ///< its id
  uint32_t reserved;
  char host[64];     ///< ends with a zero
  uint64_t check;    ///< checksum() of what stands before
  uint64_t length;   ///< bytes of the file that are in use: grows with every record
  uint64_t dropped;  ///< records that no longer fitted
};
static_assert(sizeof(Header) == 144);

struct RecordHeader {
  uint32_t size;   ///< bytes of payload
  uint32_t check;  ///< record_check(), written last; 0: not yet whole
  Kind kind;
  uint16_t reserved;
  uint32_t thread;  ///< the kernel's thread id
  uint64_t nanoseconds;
};
static_assert(sizeof(RecordHeader) == 24);

/// FNV-1a over words of eight bytes, the last one filled up with zeros: a step's gradients are
/// long.
inline uint64_t checksum(std::span<const std::byte> bytes, uint64_t from = kFnvBasis) {
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t size = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), size);
    from = fnv1a_step(from, word);
    bytes = bytes.subspan(size);
  }
  return from;
}

/// Of what stands in a header before its check.
inline uint64_t header_check(const Header& header) {
  return checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, check)));
}

/// Of a record's header and payload; never 0. Padding has no payload to check.
inline uint32_t record_check(RecordHeader header, std::span<const std::byte> payload) {
  header.check = 0;
  const auto own = checksum(std::as_bytes(std::span(&header, 1)));
  const auto sum = header.kind == Kind::padding ? own : checksum(payload, own);
  const auto folded = static_cast<uint32_t>(sum ^ (sum >> 32));
  return folded == 0 ? 1 : folded;
}

constexpr uint64_t padded(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace instrumentation
