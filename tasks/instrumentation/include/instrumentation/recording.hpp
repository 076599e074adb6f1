#pragma once
/// Evidence of a run for a checker: everything that a rank does, in a log that is written before
/// what it describes, so that a rank that dies or hangs has spoken. Off unless WORLDSIZE_RECORD
/// names a file, which whoever starts the rank makes as long as the log may grow. Off, nothing is
/// wrapped and a seam costs one branch.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "instrumentation/events.hpp"

namespace instrumentation::recording {

/// True if this process records. Throws Error if it should and cannot.
bool enabled();

/// Appends one record. Thread-safe; what no longer fits is dropped and counted.
void record(Kind kind, std::span<const std::byte> payload);
void record_text(Kind kind, std::string_view text);
template <class Record>
void record_one(Kind kind, const Record& payload) {
  record(kind, std::as_bytes(std::span(&payload, 1)));
}

/// Notes where the main thread is. Work that it starts there and another thread does (autograd's,
/// on GPUs) is then shown at this place. To be called just before, and only if enabled().
void note_place();

}  // namespace instrumentation::recording
