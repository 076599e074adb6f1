#pragma once
/// The memory of this process's tensors on the CPU, counted by its bytes: the same in every run of
/// the same program, on any machine. Off until count() or limit(); off, torch allocates as ever.
#include <cstdint>
#include <string>

namespace instrumentation {
enum class Moment : uint64_t;
}

namespace instrumentation::memory {

/// Counts from now on. What was allocated before is never counted.
void count();

struct Counted {
  uint64_t live = 0;
  uint64_t most = 0, least = 0;  ///< since the last look
};
/// Zeros before count().
Counted look();

/// Records what was counted at this moment, for the judge.
void record(Moment moment, const Counted& counted = look());

/// Counts, and from now on refuses to allocate what would make it more than so many bytes: it
/// throws Error, which says how much there is and what there is to do. name: of the limit,
/// "--memory-limit".
void limit(uint64_t bytes, const std::string& name);

}  // namespace instrumentation::memory
