#pragma once
/// ROUGE (Lin 2004, "ROUGE: a package for automatic evaluation of summaries",
/// https://aclanthology.org/W04-1013, sections 2 and 3.1): how much of a summary's words, pairs of
/// words and order of words is that of a reference. Each as F1, the harmonic mean of precision and
/// recall, in [0, 1].
#include <cstdint>
#include <vector>

namespace tasks::summaries {

struct Rouge {
  double one = 0;      ///< words, each as often as both have it
  double two = 0;      ///< words that follow each other
  double longest = 0;  ///< the longest sequence of words that both have in order (ROUGE-L)
};

/// Words are equal where their numbers are. Both may be empty; what lacks words scores 0.
Rouge rouge(const std::vector<int64_t>& candidate, const std::vector<int64_t>& reference);

}  // namespace tasks::summaries
