#include <algorithm>

#include "evidence/folders.hpp"
#include "judge/rules/model_files.hpp"
#include "judge/rules/passes.hpp"
#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// By save0; of other ways to save nothing is known.
bool saves_before_validation(const RankSeen& rank) {
  const auto validations = rank.evaluations(Split::validation);
  return !rank.saves.empty() && !validations.empty() &&
         rank.saves[0] < validations[0]->batches[0].event;
}

// As before the TODO: every rank writes, and none by save0.
bool everybody_saves(const RunContext& context) {
  return std::ranges::all_of(context.run().ranks, [](const RankSeen& rank) {
    return rank.saves.empty() && !rank.files.empty();
  });
}

Symptom others_save(const RunContext& context, const std::vector<size_t>& writers) {
  auto values = context.values();
  values["ranks"] = ranks_value(writers);
  Symptom symptom{
      .id = "other_ranks_save",
      .values = values,
      .variant = context.are_first_on_other_nodes(writers) ? "by_node" : "",
      .kind = everybody_saves(context) ? FindingKind::not_started : FindingKind::mistake};
  for (const size_t rank : writers) {
    const auto& files = context.run().ranks[rank].files;
    symptom.evidence.push_back(
        {files.size() > 1 ? "wrote_and_more" : "wrote",
         {{"rank", rank}, {"file", files.front().string()}, {"more", files.size() - 1}}});
  }
  return symptom;
}

// Where two models of one epoch lie in one file: which name has no file. The files' names are the
// step's own, so nothing is known where several are missing.
bool one_file_is_missing(const RunContext& context, const std::vector<FileContent>& files,
                         Symptom& symptom) {
  size_t missing = 0;
  for (const auto& [model, name] : context.course.models_of(context.step)) {
    const auto path = std::filesystem::path(kOutputFolder) / name;
    if (name.ends_with('/')) continue;  // in parts
    if (std::ranges::find(files, path, &FileContent::file) != files.end()) continue;
    ++missing;
    symptom.values["model"] = model;
    symptom.values["file"] = name;
    symptom.values["epoch"] = epoch_of(context, model);
  }
  if (missing == 1) symptom.variant = "one_file";
  return missing == 1;
}

// A model that would not be missing if it lay in the output folder.
void add_beside(const RunContext& context, const std::vector<FileContent>& written,
                const std::vector<FileContent>& inside, Symptom& symptom) {
  for (const auto* model : {"best", "final"}) {
    const auto epoch = epoch_of(context, model);
    const auto found = std::ranges::find_if(written, [&](const FileContent& file) {
      return file.holds == epoch && *file.file.begin() != kOutputFolder;
    });
    if (holds(inside, epoch) || found == written.end()) continue;
    symptom.evidence.push_back({"beside", {{"beside", found->file.string()}}});
    return;
  }
}

// The models that rank 0's files do not hold, as findings.yaml calls them.
std::vector<Value> missing_models(const RunContext& context, const std::vector<FileContent>& files,
                                  std::string& variant) {
  std::vector<Value> missing;
  for (const auto* model : {"best", "final"}) {
    const auto epoch = epoch_of(context, model);
    if (!holds(files, epoch))
      missing.emplace_back("the " + std::string(model) + " model (" + epoch + ")");
  }
  // Two files, also where the last epoch is the best.
  const auto models = std::ranges::count_if(
      files, [](const FileContent& file) { return file.holds.starts_with("epoch "); });
  if (missing.empty() && models < 2) missing.emplace_back("one of the best and the final model");
  if (missing.size() > 1) variant = "both";
  return missing;
}

// Whether rank 0's files hold both models, each where the step wants it.
void judge_models(const RunContext& context, Symptoms& symptoms) {
  const auto written = files_left_by(context, 0);
  const bool follows =
      losses_are_in_doubt(symptoms) || parameters_change_beside_the_optimizer(context);
  Symptom symptom{.id = "model_missing",
                  .values = context.values(),
                  .evidence = {{"left", {{"files", list_of_files(written)}}}},
                  .kind = everybody_saves(context) ? FindingKind::not_started
                          : follows                ? FindingKind::consequence
                                                   : FindingKind::mistake};
  const auto inside = in_the_output_folder(written);
  const auto missing = missing_models(context, inside, symptom.variant);
  if (!missing.empty()) {
    const bool a_name = holds(inside, epoch_of(context, "best")) &&
                        holds(inside, epoch_of(context, "final")) &&
                        one_file_is_missing(context, inside, symptom);
    if (!a_name) add_beside(context, written, inside, symptom);
    symptom.values["first"] = missing.front();
    symptom.values["last"] = missing.back();
    symptoms.push_back(std::move(symptom));
  } else if (auto misnamed = misnamed_models(context)) {
    if (follows) misnamed->kind = FindingKind::consequence;
    symptoms.push_back(std::move(*misnamed));
  }
}

}  // namespace

void saving(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::save0) || context.run().ranks.empty()) return;
  std::vector<size_t> writers;
  for (size_t rank = 1; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (any_after_shutdown(seen, seen.saves)) continue;  // it left too early: another rule's
    if (!seen.files.empty()) writers.push_back(rank);
  }
  if (!writers.empty()) {
    symptoms.push_back(others_save(context, writers));
    return;
  }
  if (!context.ended_well() || context.truth.ranks.empty() || context.truth.validation.empty())
    return;
  if (auto broken = broken_safetensors(context)) {
    symptoms.push_back(std::move(*broken));
  } else if (saves_before_validation(context.run().ranks[0])) {
    symptoms.push_back(
        {.id = "saved_too_early", .values = context.values(), .evidence = {{"first", {}}}});
  } else {
    judge_models(context, symptoms);
  }
}

}  // namespace checker::rules
