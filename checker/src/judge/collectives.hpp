#pragma once
/// Describes collectives in words, and finds where ranks disagree about them.
#include <optional>
#include <string>
#include <vector>

#include "judge/run_context.hpp"

namespace checker {

/// "all_reduce of 2 float64 (SUM)", "broadcast of 5 float32 from rank 1", "barrier".
std::string describe(const CollectiveSeen& collective);
/// The same, and what of the model it moves, where size, type and place tell that: "the model's
/// gradients (all_reduce of 973 float32 (SUM))".
std::string describe(const RankSeen& rank, const CollectiveSeen& collective);

/// The first collective of a group about which two ranks disagree.
struct Mismatch {
  std::string group;
  uint64_t sequence = 0;
  size_t rank_a = 0, rank_b = 0;
  const CollectiveSeen* a = nullptr;
  const CollectiveSeen* b = nullptr;  ///< null: rank b never issued it
};

/// counts: whether a rank that issued fewer than another disagrees as well, as it does once the run
/// has ended by itself.
std::optional<Mismatch> find_mismatch(const Run& run, bool counts);

/// The first collective of a group that one rank calls in an evaluation and another rank elsewhere:
/// one of them left out a call before, even if the calls match.
std::optional<Mismatch> find_parting(const Run& run);

/// What a rank called, and where, as far as that is known. name: of the line, "waits" or "called".
EvidenceLine seen_call(const RunContext& context, const char* name, size_t rank,
                       const CollectiveSeen& collective);
/// Two lines: what each of the two ranks called.
std::vector<EvidenceLine> seen_of(const RunContext& context, const Mismatch& mismatch);

/// "size", "reduce op", ...: in what two collectives differ.
std::string difference(const CollectiveSeen& a, const CollectiveSeen& b);

/// What the program started before this place in the log and never waited for, as far as can be
/// known; null: nothing.
const CollectiveSeen* not_awaited(const RankSeen& rank, size_t before = SIZE_MAX);

/// The collective that a rank was in when it was last seen; null if in none.
const CollectiveSeen* waiting_in(const RankSeen& rank);

}  // namespace checker
