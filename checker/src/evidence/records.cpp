#include "evidence/records.hpp"

#include <algorithm>
#include <cstring>

namespace checker {

namespace format = instrumentation;

namespace {

template <class T>
T load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

uint64_t next_chunk(uint64_t at) { return (at / format::kChunk + 1) * format::kChunk; }

// Bytes up to the last one that is not zero: what follows it was never written.
uint64_t written(std::string_view bytes) { return bytes.find_last_not_of('\0') + 1; }

// Where no whole record is: nothing was written there, or a process was killed while it wrote, or
// there is damage.
uint64_t damaged_at(std::string_view rest, const format::RecordHeader& head) {
  const uint64_t found = written(rest);
  if (head.check != 0) return found;
  constexpr uint64_t kOneRecord = 4096;
  return found > std::max(kOneRecord, sizeof head + head.size) ? found : 0;
}

}  // namespace

std::optional<HeaderRead> read_header(std::string_view bytes) {
  if (bytes.size() < sizeof(format::Header)) return std::nullopt;
  HeaderRead read{.header = load<format::Header>(bytes)};
  if (read.header.magic != format::kMagic) return std::nullopt;
  read.damaged = format::header_check(read.header) != read.header.check ||
                 std::memchr(read.header.host, 0, sizeof read.header.host) == nullptr;
  return read;
}

uint64_t read_records(std::string_view bytes, const std::function<void(const RecordRead&)>& take) {
  uint64_t damaged = 0;
  uint64_t at = sizeof(format::Header);
  while (at + sizeof(format::RecordHeader) <= bytes.size()) {
    const uint64_t chunk_end = next_chunk(at);
    if (chunk_end - at < sizeof(format::RecordHeader)) {
      at = chunk_end;
      continue;
    }
    const auto head = load<format::RecordHeader>(bytes.substr(at));
    const auto rest = bytes.substr(at + sizeof head);
    const auto payload = rest.substr(0, std::min<uint64_t>(head.size, rest.size()));
    const bool whole = head.check != 0 && payload.size() == head.size &&
                       format::record_check(head, std::as_bytes(std::span(payload))) == head.check;
    if (!whole) {
      damaged += damaged_at(bytes.substr(at, chunk_end - at), head);
      at = chunk_end;
      continue;
    }
    if (head.kind != format::Kind::padding)
      take({head.kind, head.nanoseconds, head.thread, payload});
    at += format::padded(sizeof head + head.size);
  }
  return damaged;
}

}  // namespace checker
