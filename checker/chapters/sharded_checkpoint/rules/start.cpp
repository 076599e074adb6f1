// A run that starts from a saved model: its ranks begin with that model's parameters, however many
// they are, and its optimizer goes on with the state that it had then.
#include <algorithm>
#include <array>
#include <string_view>

#include "judge/departure.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void start(const RunContext& context, Symptoms& symptoms);

namespace {

Symptom about(const RunContext& context, std::string id, EvidenceLine line) {
  return {.id = std::move(id), .values = context.values(), .evidence = {std::move(line)}};
}

constexpr std::array<std::string_view, 3> kOfTheState{"optimizer's state", "optimizer state",
                                                      "The optimizer has a parameter"};

// distributed_utils refuses a folder without the state that is asked for.
bool refused_the_state(const RunContext& context, Symptoms& symptoms) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto words = last_words(context.run().ranks[rank]);
    if (std::ranges::none_of(kOfTheState,
                             [&](const auto said) { return words.find(said) != words.npos; })) {
      continue;
    }
    symptoms.push_back(
        about(context, "state_refused", {"refused", {{"rank", rank}, {"words", words}}}));
    return true;
  }
  return false;
}

// Files that nobody can read may be at fault as well as whoever reads them.
bool is_in_doubt(const RunContext& context) {
  const auto& saved = context.truth.saved;
  return saved && !std::ranges::all_of(saved->files, &SavedFile::readable);
}

// Then the files take three times what the model takes, and the TODO is begun.
bool is_state_saved(const RunContext& context) {
  constexpr double kModels = 2;
  const auto& saved = context.truth.saved;
  if (!saved) return false;
  double bytes = 0;
  for (const auto& file : saved->files) bytes += static_cast<double>(file.bytes);
  return bytes > kModels * static_cast<double>(saved->elements * sizeof(double));
}

void look_at_parameters(const RunContext& context, const ContinuedRun& run, Symptoms& symptoms) {
  const auto& unknown = run.unknown;
  const auto rank = static_cast<size_t>(std::ranges::max_element(unknown) - unknown.begin());
  if (unknown[rank] == 0) {  // and the model is of none of the epochs
    auto symptom = about(context, "begins_anew", {"new_model", {}});
    symptom.kind = FindingKind::not_started;
    symptoms.push_back(std::move(symptom));
  } else if (!is_in_doubt(context)) {
    symptoms.push_back(about(context, "starts_elsewhere",
                             {"other_values", {{"rank", rank}, {"elements", unknown[rank]}}}));
  }
}

}  // namespace

void start(const RunContext& context, Symptoms& symptoms) {
  if (!context.run().result.success() && refused_the_state(context, symptoms)) return;
  if (!context.ended_well() || !context.truth.continued) return;
  const auto& run = *context.truth.continued;
  if (run.steps == 0) {
    symptoms.push_back(about(context, "starts_elsewhere", {"no_step", {}}));
  } else if (!run.starts_right()) {
    look_at_parameters(context, run, symptoms);
  } else if (context.expects("STATE") && run.kept < kUnknown && run.kept > context.tolerance()) {
    const bool anew = run.fresh <= context.tolerance();
    auto symptom = about(context, anew ? "optimizer_begins_anew" : "optimizer_state_wrong",
                         {"update", {{"kept", digits(run.kept)}}});
    if (anew && !is_state_saved(context)) symptom.kind = FindingKind::not_started;
    symptom.deviation = run.kept;
    symptoms.push_back(std::move(symptom));
  }
}

}  // namespace checker::rules
