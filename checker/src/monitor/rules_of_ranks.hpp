#pragma once
#include <vector>

#include "monitor/rules.hpp"

namespace checker::monitor {

/// Sentences on how ranks differ, on what goes wrong over time, and on how the run ended.
void add_sentences_on_ranks(const Run& run, const Figures& figures, std::vector<Sentence>& say);

}  // namespace checker::monitor
