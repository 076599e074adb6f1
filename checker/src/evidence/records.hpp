#pragma once
/// Reads the format of logs (see instrumentation/log.hpp). A log may come from a process that
/// nobody trusts, or from one that was killed while it wrote: whatever does not fit is left out,
/// never believed.
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "instrumentation/log.hpp"

namespace checker {

/// A whole record; the payload lies in the bytes that were read.
struct RecordRead {
  instrumentation::Kind kind;
  uint64_t nanoseconds;
  uint32_t thread;
  std::string_view payload;
};

/// A log's header, if it is one; else nothing. Damaged: its check does not hold.
struct HeaderRead {
  instrumentation::Header header;
  bool damaged = false;
};
std::optional<HeaderRead> read_header(std::string_view bytes);

/// Calls `take` for each record, in their order. bytes: a log from its beginning, possibly without
/// some whole chunks. Returns how many bytes are damaged.
uint64_t read_records(std::string_view bytes, const std::function<void(const RecordRead&)>& take);

}  // namespace checker
