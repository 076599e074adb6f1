#include <algorithm>
#include <map>

#include "judge/rules/model_files.hpp"
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

using Loss = ExpectedWorld::Loss;

// The losses that rank 0 prints less often than there are lines for them.
std::vector<Loss> not_printed(const RunContext& context) {
  const auto numbers = numbers_in(context.run().ranks[0].output);
  std::map<double, size_t> wanted;
  std::vector<Loss> missing;
  for (const auto& loss : context.truth.losses()) {
    if (times_shown(numbers, loss.value) < ++wanted[loss.value]) missing.push_back(loss);
  }
  return missing;
}

// The line that has the loss's name, and another number.
std::string line_about(const RunContext& context, const Loss& loss) {
  for (const auto& line : context.run().ranks[0].output) {
    if (line.find(loss.name + ":") != std::string::npos) return line;
  }
  return "";
}

// The files hold the best model, so the program knows which loss is the best.
bool best_is_saved(const RunContext& context) {
  const auto best = epoch_of(context, "best");
  return best != epoch_of(context, "final") &&
         holds(in_the_output_folder(files_left_by(context, 0)), best);
}

Symptom not_all_printed(const RunContext& context, const std::vector<Loss>& missing) {
  const auto& first = missing.front();
  if (const auto raw = unformatted(context.run().ranks[0].output)) {
    return {.id = "not_all_printed",
            .values = context.values(),
            .evidence = {{"printed_as_it_is", {{"line", raw->substr(0, 70)}}}},
            .variant = "unformatted"};
  }
  const auto line = missing.size() == 1 ? line_about(context, first) : "";
  const auto named = first.name + ", " + digits(first.value);
  if (line.empty()) {
    return {.id = "not_all_printed",
            .values = context.values(),
            .evidence = {{missing.size() > 1 ? "not_printed_and_more" : "not_printed",
                          {{"first", named}, {"more", missing.size() - 1}}}}};
  }
  const bool best = first.name.starts_with("best");
  // The best loss is what decides whether a model is saved.
  const bool decides = best && !best_is_saved(context);
  return {.id = "not_all_printed",
          .values = context.values(),
          .evidence = {{"printed_another", {{"line", line.substr(0, 70)}, {"expected", named}}}},
          .variant = best ? "best" : "",
          .blame = {decides ? "not_all_printed.best" : "not_all_printed"}};
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
  auto symptom = not_all_printed(context, missing);
  if (context.run().ranks[0].output.empty()) {
    symptom.id = "nobody_prints";
  } else if (losses_are_in_doubt(symptoms)) {
    symptom.kind = FindingKind::consequence;
  }
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
