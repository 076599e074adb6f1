#include <algorithm>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

std::string list_of(const std::vector<FileTruth>& files) {
  std::string text;
  for (const auto& file : files) {
    text += (text.empty() ? "" : "; ") + file.file.string() + ": " + file.holds;
  }
  return text.empty() ? "no files" : text;
}

bool holds(const std::vector<FileTruth>& files, const std::string& state) {
  return std::ranges::any_of(files, [&](const FileTruth& file) { return file.holds == state; });
}

// Their paths from the folder that the rank ran in.
std::vector<FileTruth> files_of(const Scene& scene, size_t rank) {
  auto files = scene.truth.ranks[rank].files;
  for (auto& file : files) {
    file.file = file.file.lexically_relative(scene.run().ranks[rank].folder);
  }
  return files;
}

// What lies where --output said.
std::vector<FileTruth> in_the_output_folder(std::vector<FileTruth> files) {
  std::erase_if(files, [](const FileTruth& file) {
    return file.file.empty() || *file.file.begin() != kOutputFolder;
  });
  return files;
}

// By save0; of other ways to save nothing is known.
bool saves_before_validation(const RankSeen& rank) {
  const auto validations = rank.passes_over(Split::validation);
  return !rank.saves.empty() && !validations.empty() && !validations[0]->batches.empty() &&
         rank.saves[0] < validations[0]->batches[0].event;
}

// As before the TODO: every rank writes, and none by save0.
bool everybody_saves(const Scene& scene) {
  return std::ranges::all_of(scene.run().ranks, [](const RankSeen& rank) {
    return rank.saves.empty() && !rank.files.empty();
  });
}

std::string epoch_name(size_t epoch) { return "epoch " + std::to_string(epoch + 1); }

}  // namespace

void saving(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::save0) || scene.run().ranks.empty()) return;
  const int todo = scene.blame({feature::save0});
  std::vector<size_t> writers;
  std::vector<std::string> evidence;
  for (size_t rank = 1; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (any_after_shutdown(seen, seen.saves)) continue;  // it left too early: another rule's
    const auto& files = seen.files;
    if (files.empty()) continue;
    writers.push_back(rank);
    evidence.push_back(
        "rank " + std::to_string(rank) + " wrote " + files.front().string() +
        (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : "") + ", " +
        scene.where());
  }
  if (!writers.empty()) {
    const bool by_node = scene.are_first_on_other_nodes(writers);
    findings.push_back(
        {todo, "other_ranks_save",
         "Not only rank 0 writes files: " + ranks_in_words(writers) +
             (writers.size() > 1 ? " do as well." : " does as well."),
         by_node ? "Rank 2 is the first of the second node: its local rank is 0, its rank is not."
                 : "On a cluster all ranks see the same folder: they would write over each other's "
                   "file. All hold the same model, so that rank 0's is enough: save0, for the best "
                   "and for the final model.",
         evidence, "", everybody_saves(scene) ? FindingKind::not_started : FindingKind::mistake});
    return;
  }
  if (!scene.ended_well() || scene.truth.ranks.empty() || scene.truth.validation.empty()) return;
  const auto written = files_of(scene, 0);
  const auto files = in_the_output_folder(written);
  if (saves_before_validation(scene.run().ranks[0])) {
    findings.push_back({todo,
                        "saved_too_early",
                        "A model is saved before the first validation.",
                        "Whether a model is the best so far is known once it was validated: save0 "
                        "stands after that, where torch::save stood.",
                        {scene.where() + ": rank 0's first save0 comes before its first batch of "
                                         "validation"},
                        ""});
    return;
  }
  const auto& losses = scene.truth.validation;
  const auto best = static_cast<size_t>(std::ranges::min_element(losses) - losses.begin());
  const size_t last = losses.size() - 1;
  std::vector<std::string> missing;
  if (!holds(files, epoch_name(best)))
    missing.push_back("the best model (" + epoch_name(best) + ")");
  if (!holds(files, epoch_name(last)))
    missing.push_back("the final model (" + epoch_name(last) + ")");
  // Two files, also where the last epoch is the best.
  const auto models = std::ranges::count_if(
      files, [](const FileTruth& file) { return file.holds.starts_with("epoch "); });
  if (missing.empty() && models < 2) missing.emplace_back("one of the best and the final model");
  if (missing.empty()) return;
  findings.push_back(
      {todo,
       "model_missing",
       "Rank 0's files do not hold " + missing.front() +
           (missing.size() > 1 ? ", nor " + missing.back() : "") + ".",
       "save0 writes the model as it is at that moment, into options.output: the best one "
       "whenever the validation loss has become better, the final one at the end.",
       {scene.where() + ", rank 0 left: " + list_of(written)},
       "",
       everybody_saves(scene) ? FindingKind::not_started : FindingKind::mistake});
}

}  // namespace checker::rules
