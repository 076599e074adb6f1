// Each rank has written its part of the best model, and the parts together are all of it. Where a
// part lies is told by its values, so that files may have any names and cut the model in any way.
#include <algorithm>
#include <filesystem>

#include "evidence/folders.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void parts(const RunContext& context, Symptoms& symptoms);

namespace {

namespace fs = std::filesystem;

// Of an optimizer's state, a number may happen to be one of the model's.
constexpr double kByChance = 0.01;

class Parts {
 public:
  Parts(const RunContext& context, Symptoms& symptoms) : context_(context), symptoms_(symptoms) {}

  void judge() {
    if (!context_.truth.saved || context_.truth.saved->files.empty()) return nothing_saved();
    const auto& saved = *context_.truth.saved;
    readable_ = std::ranges::all_of(saved.files, &SavedFile::readable);
    if (idle_writers()) return;
    if (!readable_) return;  // the run that starts from it must tell
    const auto best = best_epoch();
    if (saved.missing == saved.elements) {
      add("another_model_saved", "", {"holds_none", {}});
    } else if (saved.missing > 0) {
      add("parts_missing", saved.older > 0 ? "of_two_moments" : "",
          {"lack", {{"missing", saved.missing}, {"elements", saved.elements}}});
    } else if (best != 0 && saved.epoch != best) {
      add("another_model_saved", "", {"holds", {{"epoch", saved.epoch}, {"best", best}}});
    } else if (static_cast<double>(saved.several) >
               kByChance * static_cast<double>(saved.elements)) {
      add("parts_saved_twice", "",
          {"twice", {{"several", saved.several}, {"elements", saved.elements}}});
    }
  }

 private:
  // Equal losses leave open which of the models is the best.
  size_t best_epoch() const {
    const auto& losses = context_.truth.validation;
    if (losses.empty()) return 0;
    return static_cast<size_t>(std::ranges::min_element(losses) - losses.begin()) + 1;
  }

  // The unchanged step gathers the best model into one file beside the folder.
  void nothing_saved() {
    Symptom symptom{.id = "no_parts", .values = context_.values(), .evidence = {{"no_folder", {}}}};
    // Of the ranks that call save0(), it takes only rank 0 for rank 0.
    const bool by_save0 = context_.run().ranks[0].saves.size() > 1;
    if (by_save0 && !context_.truth.saved) symptom.kind = FindingKind::not_started;
    symptoms_.push_back(std::move(symptom));
  }

  // A rank that trains a part of the model, and has written nothing of it.
  bool idle_writers() {
    if (context_.world() == 1) return false;
    std::vector<size_t> idle;
    for (size_t rank = 0; rank < context_.world(); ++rank) {
      if (written_by(rank) == 0) idle.push_back(rank);
    }
    if (idle.empty()) return false;
    add("not_all_ranks_write", idle.size() + 1 == context_.world() ? "one_writes" : "",
        {"idle", {{"ranks", ranks_value(idle)}}});
    return true;
  }

  // Elements of the model; bytes where that cannot be told.
  size_t written_by(size_t rank) const {
    const auto& seen = context_.run().ranks[rank];
    size_t written = 0;
    const auto ran_in = fs::weakly_canonical(context_.run().ranks[0].folder);
    for (const auto& file : context_.truth.saved->files) {
      // model-best may be a link to the folder that the ranks wrote.
      const auto name = fs::weakly_canonical(file.file).lexically_relative(ran_in);
      if (std::ranges::find(seen.files, name) == seen.files.end()) continue;
      written += readable_ ? file.own : file.bytes;
    }
    return written;
  }

  void add(std::string id, std::string variant, EvidenceLine line) {
    symptoms_.push_back({.id = std::move(id),
                         .values = context_.values(),
                         .evidence = {std::move(line)},
                         .variant = std::move(variant)});
  }

  const RunContext& context_;
  Symptoms& symptoms_;
  bool readable_ = true;
};

}  // namespace

void parts(const RunContext& context, Symptoms& symptoms) {
  if (context.expects("SHARDS")) Parts(context, symptoms).judge();
}

}  // namespace checker::rules
