#pragma once
/// Finds out where in the program a rank was, and where ranks diverge.
#include <optional>
#include <string>

#include "judge/run_context.hpp"

namespace checker {

/// What part of the program a place in a rank's log belongs to.
enum class Phase {
  joining,    ///< no process group yet
  preparing,  ///< between the group and the first batch
  training,
  after_step,  ///< between an optimizer step and the next batch, or at the end of an epoch
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

/// Ranks call print0 and save0 equally often, at the same places of the program. What blame tables
/// call the first such call that one rank makes and another does not, "call.print0"; nothing if
/// they part elsewhere.
std::optional<std::string> first_call_not_shared(const Run& run);

/// Whether some rank goes through an evaluation that another passes by. What blame tables call
/// that: "validation_by_some_ranks" where another one trains on or tests, "test_by_some_ranks"
/// where another one leaves after its last epoch. A rank that leaves before that passes by nothing.
std::optional<std::string> first_evaluation_not_shared(const Run& run);

/// print0 follows each evaluation, and save0 ends the program. Such a call that some rank left out
/// when it went on or home; nothing where all calls are there, or all are made in another way.
std::optional<std::string> first_call_left_out(const Run& run);

}  // namespace checker
