#pragma once
/// Collectives in words, and where ranks disagree about them.
#include <optional>
#include <string>
#include <vector>

#include "judge/scene.hpp"

namespace checker {

/// "all_reduce of 2 float64 (SUM)", "broadcast of 5 float32 from rank 1", "barrier".
std::string describe(const CollectiveSeen& collective);

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

/// What a rank called, and where, as far as that is known. name: of the line, "waits" or "called".
EvidenceLine seen_call(const Scene& scene, const char* name, size_t rank,
                       const CollectiveSeen& collective);
/// Two lines: what each of the two ranks called.
std::vector<EvidenceLine> seen_of(const Scene& scene, const Mismatch& mismatch);

/// "size", "reduce op", ...: in what two collectives differ.
std::string difference(const CollectiveSeen& a, const CollectiveSeen& b);

/// The collective that a rank was in when it was last seen; null if in none.
const CollectiveSeen* waiting_in(const RankSeen& rank);

/// What part of the program a place in a rank's log belongs to.
enum class Phase {
  joining,    ///< no process group yet
  preparing,  ///< between the group and the first batch
  training,
  checkpointing,
  evaluating,
  reporting,  ///< after an evaluation, or after it was reported
  saving,     ///< after print0, or save0
  closing,    ///< the same after the test
  leaving,    ///< after the save0 that follows it, or a shutdown
};
Phase phase_at(const RankSeen& rank, size_t event);

/// What blame tables and findings.yaml's phrases call a phase: "phase.training".
std::string name_of(Phase phase);

}  // namespace checker
