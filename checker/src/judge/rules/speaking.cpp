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

void wording(const Scene& scene, Symptoms& symptoms) {
  for (const auto& line : scene.run().ranks[0].output) {
    auto problem = wrong_wording(line, scene.truth);
    if (!problem) continue;
    problem->values["line"] = line.substr(0, 100);
    symptoms.push_back(
        {.id = "other_words", .values = scene.values(), .evidence = {std::move(*problem)}});
    return;
  }
}

Symptom others_print(const Scene& scene, const std::vector<size_t>& ranks) {
  const bool silent = scene.run().ranks[0].output.empty();
  auto values = scene.values();
  values["ranks"] = ranks_value(ranks);
  Symptom symptom{
      .id = silent ? "wrong_rank_prints" : "other_ranks_print",
      .values = values,
      .variant = scene.are_first_on_other_nodes(ranks) ? "by_node" : "",
      .kind = everybody_prints(scene, ranks) ? FindingKind::not_started : FindingKind::mistake};
  for (const size_t rank : ranks) {
    const auto& first = scene.run().ranks[rank].output.front();
    symptom.evidence.push_back({"printed", {{"rank", rank}, {"line", first.substr(0, 70)}}});
  }
  return symptom;
}

}  // namespace

void speaking(const Scene& scene, Symptoms& symptoms) {
  if (!scene.expects(feature::print0) || scene.run().ranks.empty()) return;
  const auto ranks = speakers(scene);
  if (!ranks.empty()) {
    symptoms.push_back(others_print(scene, ranks));
    return;
  }
  if (!scene.ended_well() || scene.run().ranks[0].lines_left_out > 0) return;
  const auto missing = not_printed(scene);
  if (missing.empty()) return wording(scene, symptoms);
  const bool nothing = scene.run().ranks[0].output.empty();
  symptoms.push_back({.id = nothing ? "nobody_prints" : "not_all_printed",
                      .values = scene.values(),
                      .evidence = {{missing.size() > 1 ? "not_printed_and_more" : "not_printed",
                                    {{"first", missing.front()}, {"more", missing.size() - 1}}}}});
}

}  // namespace checker::rules
