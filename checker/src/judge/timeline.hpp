#pragma once
#include "evidence/run.hpp"
#include "judge/verdict.hpp"

namespace checker {

/// The collectives of every rank, the first and the last few hundred of a long run.
Timeline timeline_of(const Run& run);

}  // namespace checker
