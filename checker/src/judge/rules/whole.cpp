#include <algorithm>

#include "judge/rules/rules.hpp"
#include "judge/secret.hpp"

namespace checker::rules {

namespace {

std::string seen_in_words(const RankSeen& rank) {
  return std::to_string(rank.passes_over(Split::train).size()) + " training epochs, " +
         std::to_string(rank.passes_over(Split::validation).size()) + " validations, " +
         std::to_string(rank.passes_over(Split::test).size()) + " tests, " +
         std::to_string(rank.steps.size()) + " optimizer steps";
}

bool is_whole(const RankSeen& rank) {
  size_t batches = 0;
  for (const auto* pass : rank.passes_over(Split::train)) batches += pass->batches.size();
  return rank.passes_over(Split::train).size() == kSecretEpochs &&
         rank.passes_over(Split::validation).size() == kSecretEpochs &&
         rank.passes_over(Split::test).size() == 1 && rank.steps.size() == batches;
}

}  // namespace

void whole(const Scene& scene, Findings& findings) {
  if (!scene.run().result.success()) return;
  std::vector<std::string> evidence;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (is_whole(seen) && seen.left_regularly) continue;
    evidence.push_back("rank " + std::to_string(rank) + ", " + scene.where() + ": " +
                       seen_in_words(seen) +
                       (seen.left_regularly ? "" : "; it left without returning from main"));
  }
  if (evidence.empty()) return;
  const int todo = scene.step.todos.empty() || scene.expects(feature::destroy)
                       ? scene.blame({feature::destroy})
                       : scene.step.todos.back();
  findings.push_back({todo, "cut_short", "The program ends before its work is done.",
                      "As given it trains " + std::to_string(kSecretEpochs) +
                          " epochs here, evaluates after each and tests at the end, on every rank.",
                      evidence, ""});
}

}  // namespace checker::rules
