#include <algorithm>
#include <map>

#include "judge/rules/passes.hpp"
#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"
#include "judge/rules/wording.hpp"

namespace checker::rules {

namespace {

std::vector<size_t> speakers(const Scene& scene) {
  std::vector<size_t> ranks;
  for (size_t rank = 1; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (any_after_shutdown(seen, seen.prints)) continue;  // it left too early: another rule's
    if (!seen.output.empty()) ranks.push_back(rank);
  }
  return ranks;
}

// As before the TODO: every rank prints, and none by print0.
bool everybody_prints(const Scene& scene, const std::vector<size_t>& others) {
  return others.size() + 1 == scene.world() &&
         std::ranges::all_of(scene.run().ranks, [](const RankSeen& rank) {
           return rank.prints.empty() && !rank.output.empty();
         });
}

std::string why_of(const Scene& scene, const std::vector<size_t>& ranks) {
  const bool by_node = scene.are_first_on_other_nodes(ranks);
  if (by_node) {
    return "Rank 2 is the first of the second node: its local rank is 0, its rank is not. Rank 0 "
           "is "
           "there once in the whole world.";
  }
  return "print0 prints on rank 0 and does nothing on the others. All ranks know the same numbers: "
         "once is enough.";
}

// The losses that rank 0 prints less often than there are lines for them.
std::vector<std::string> not_printed(const Scene& scene) {
  const auto numbers = numbers_in(scene.run().ranks[0].output);
  std::map<double, size_t> wanted;
  std::vector<std::string> missing;
  for (const auto& loss : scene.truth.losses()) {
    if (times_shown(numbers, loss.value) >= ++wanted[loss.value]) continue;
    missing.push_back(loss.name + ", " + digits(loss.value));
  }
  return missing;
}

void wording(const Scene& scene, Findings& findings) {
  for (const auto& line : scene.run().ranks[0].output) {
    const auto problem = wrong_wording(line, scene.truth);
    if (problem.empty()) continue;
    findings.push_back({scene.blame({feature::print0}),
                        "other_words",
                        "Rank 0 does not print what the program printed as given.",
                        "print0 stands where printing stood: the same text, the same numbers in "
                        "the same order, a line each.",
                        {"\"" + line.substr(0, 100) + "\" " + problem + ", " + scene.where()},
                        ""});
    return;
  }
}

}  // namespace

void speaking(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::print0) || scene.run().ranks.empty()) return;
  const auto ranks = speakers(scene);
  const int todo = scene.blame({feature::print0});
  if (!ranks.empty()) {
    std::vector<std::string> evidence;
    for (const size_t rank : ranks) {
      evidence.push_back("rank " + std::to_string(rank) + " printed \"" +
                         scene.run().ranks[rank].output.front().substr(0, 70) + "\", " +
                         scene.where());
    }
    const bool silent = scene.run().ranks[0].output.empty();
    findings.push_back(
        {todo, silent ? "wrong_rank_prints" : "other_ranks_print",
         silent ? "Another rank prints in place of rank 0."
                : "Not only rank 0 prints: " + ranks_in_words(ranks) +
                      (ranks.size() > 1 ? " do as well." : " does as well."),
         why_of(scene, ranks), evidence, "",
         everybody_prints(scene, ranks) ? FindingKind::not_started : FindingKind::mistake});
    return;
  }
  if (!scene.ended_well() || scene.run().ranks[0].lines_left_out > 0) return;
  const auto missing = not_printed(scene);
  if (missing.empty()) return wording(scene, findings);
  findings.push_back(
      {todo,
       scene.run().ranks[0].output.empty() ? "nobody_prints" : "not_all_printed",
       scene.run().ranks[0].output.empty() ? "Nobody prints anything."
                                           : "Rank 0 does not print all that there is to say.",
       "Every line that the program printed as given is to be printed once, by rank 0.",
       {scene.where() + ", not on rank 0's standard output: " + missing.front() +
        (missing.size() > 1 ? ", and " + std::to_string(missing.size() - 1) + " more" : "")},
       ""});
}

}  // namespace checker::rules
