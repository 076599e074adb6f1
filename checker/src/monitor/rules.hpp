#pragma once
/// Rules that say what limits a run, and what to try.
#include <string>
#include <vector>

#include "monitor/figures.hpp"

namespace checker::monitor {

struct Sentence {
  std::string id;      ///< "gpus_idle"
  std::string what;    ///< "3 of 4 GPUs idle: the run has one rank, which uses one."
  std::string advice;  ///< what to try; may be empty
  double weight = 0;   ///< share of the run that it may cost, about: the heaviest come first
};

/// The heaviest first. Never empty: where nothing stands out, it says so.
std::vector<Sentence> limits_of(const Run& run, const Figures& figures);

}  // namespace checker::monitor
