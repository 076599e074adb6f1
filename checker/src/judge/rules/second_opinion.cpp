#include "judge/rules/rules.hpp"

namespace checker::rules {

std::vector<std::string> second_opinion(const RunContext& context) {
  std::vector<std::string> disagreements;
  const bool ddp = context.expects(feature::ddp);
  for (size_t rank = 0; rank < context.truth.ranks.size(); ++rank) {
    const auto& steps = context.truth.ranks[rank].steps;
    for (size_t t = 0; t < steps.size(); ++t) {
      const double first = ddp ? steps[t].mean : steps[t].local;
      const double second = ddp ? steps[t].fingerprint_mean : steps[t].fingerprint_local;
      if (!steps[t].known || second == kUnknown) continue;
      if ((first <= context.gradient_tolerance()) == (second <= context.gradient_tolerance()))
        continue;
      disagreements.push_back("at world size " + std::to_string(context.world()) + " rank " +
                              std::to_string(rank) + ", step " + std::to_string(t + 1) +
                              ": gradients off by " + digits(first) + " by name, " +
                              digits(second) + " by fingerprint");
      break;
    }
  }
  return disagreements;
}

}  // namespace checker::rules
