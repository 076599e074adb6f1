#include <algorithm>
#include <map>

#include "judge/rules/passes.hpp"
#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"
#include "judge/rules/wording.hpp"

namespace checker::rules {

namespace {

std::vector<size_t> speakers(const RunContext& context) {
  std::vector<size_t> ranks;
  for (size_t rank = 1; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (any_after_shutdown(seen, seen.prints)) continue;  // it left too early: another rule's
    if (!seen.output.empty()) ranks.push_back(rank);
  }
  return ranks;
}

// As before the TODO: every rank prints, and none by print0.
bool everybody_prints(const RunContext& context, const std::vector<size_t>& others) {
  return others.size() + 1 == context.world() &&
         std::ranges::all_of(context.run().ranks, [](const RankSeen& rank) {
           return rank.prints.empty() && !rank.output.empty();
         });
}

// The losses that rank 0 prints less often than there are lines for them.
std::vector<std::string> not_printed(const RunContext& context) {
  const auto numbers = numbers_in(context.run().ranks[0].output);
  std::map<double, size_t> wanted;
  std::vector<std::string> missing;
  for (const auto& loss : context.truth.losses()) {
    if (times_shown(numbers, loss.value) >= ++wanted[loss.value]) continue;
    missing.push_back(loss.name + ", " + digits(loss.value));
  }
  return missing;
}

void wording(const RunContext& context, Symptoms& symptoms) {
  for (const auto& line : context.run().ranks[0].output) {
    auto problem = wrong_wording(line, context.truth);
    if (!problem) continue;
    problem->values["line"] = line.substr(0, 100);
    symptoms.push_back(
        {.id = "other_words", .values = context.values(), .evidence = {std::move(*problem)}});
    return;
  }
}

Symptom others_print(const RunContext& context, const std::vector<size_t>& ranks) {
  const bool silent = context.run().ranks[0].output.empty();
  auto values = context.values();
  values["ranks"] = ranks_value(ranks);
  Symptom symptom{
      .id = silent ? "wrong_rank_prints" : "other_ranks_print",
      .values = values,
      .variant = context.are_first_on_other_nodes(ranks) ? "by_node" : "",
      .kind = everybody_prints(context, ranks) ? FindingKind::not_started : FindingKind::mistake};
  for (const size_t rank : ranks) {
    const auto& first = context.run().ranks[rank].output.front();
    symptom.evidence.push_back({"printed", {{"rank", rank}, {"line", first.substr(0, 70)}}});
  }
  return symptom;
}

}  // namespace

void speaking(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::print0) || context.run().ranks.empty()) return;
  const auto ranks = speakers(context);
  if (!ranks.empty()) {
    symptoms.push_back(others_print(context, ranks));
    return;
  }
  if (!context.ended_well() || context.run().ranks[0].lines_left_out > 0) return;
  const auto missing = not_printed(context);
  if (missing.empty()) return wording(context, symptoms);
  const bool nothing = context.run().ranks[0].output.empty();
  symptoms.push_back({.id = nothing ? "nobody_prints" : "not_all_printed",
                      .values = context.values(),
                      .evidence = {{missing.size() > 1 ? "not_printed_and_more" : "not_printed",
                                    {{"first", missing.front()}, {"more", missing.size() - 1}}}},
                      .kind = !nothing && losses_are_in_doubt(symptoms) ? FindingKind::consequence
                                                                        : FindingKind::mistake});
}

}  // namespace checker::rules
