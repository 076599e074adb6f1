#pragma once
/// Did what the ranks say they exchanged really pass between them? In a box they have a network of
/// their own, whose bytes the kernel counts.
#include <cstdint>
#include <optional>
#include <vector>

#include "judge/experiment.hpp"
#include "judge/symptom.hpp"

namespace checker {

/// A symptom if fewer bytes passed than the collectives that were recorded as completed take at
/// least: in a group of n ranks, whatever the algorithm, n - 1 of them receive what one holds.
std::optional<Symptom> missing_traffic(const std::vector<RecordedRun>& runs, uint64_t passed);

}  // namespace checker
