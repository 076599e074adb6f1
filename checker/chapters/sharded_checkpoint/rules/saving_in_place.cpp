// While the ranks save a model, the one that they saved before is still there: whoever is killed
// then has not lost both.
#include <algorithm>
#include <map>

#include "evidence/folders.hpp"
#include "judge/rules/rules.hpp"
#include "support/files.hpp"

namespace checker::rules {

void saving_in_place(const RunContext& context, Symptoms& symptoms);

namespace {

using instrumentation::FileAction;

struct Deed {
  size_t rank;
  const FileChange* change;
};

// Follows what ranks do to the files in a folder, in the order of time.
class Folder {
 public:
  explicit Folder(const Run& run)
      : run_(run), path_(best_model_in(run.ranks.at(0).folder).lexically_normal()) {
    for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
      for (const auto& change : run.ranks[rank].file_changes) deeds_.push_back({rank, &change});
    }
    std::ranges::stable_sort(deeds_, {}, [](const Deed& deed) { return deed.change->nanoseconds; });
  }

  // The first that writes over what was saved before.
  const Deed* first_overwriting() {
    for (const auto& deed : deeds_) {
      if (overwrites(*deed.change)) return &deed;
    }
    return nullptr;
  }

 private:
  bool lies_inside(const std::filesystem::path& path) const {
    return path != path_ && lies_in(path, path_);
  }

  bool overwrites(const FileChange& change) {
    const bool moves = change.action == FileAction::move;
    if (moves && (change.path == path_ || change.new_path == path_)) {
      since_.clear();  // all of it at once: what was there is whole, somewhere
      return false;
    }
    if (moves) since_.erase(change.path);
    const auto& to = moves ? change.new_path : change.path;
    if (change.action == FileAction::remove || !lies_inside(to)) return false;
    const auto before = since_.find(to);
    // One file that takes another's place is whole at any time; several are of two models.
    const bool old = before != since_.end() && (!moves || since_.size() > 1) &&
                     has_trained_between(before->second, change.nanoseconds);
    since_[to] = change.nanoseconds;
    return old;
  }

  // Then they belong to two models.
  bool has_trained_between(uint64_t begin, uint64_t end) const {
    const auto& rank = run_.ranks[0];
    return std::ranges::any_of(rank.steps, [&](const StepSeen& step) {
      const auto time = rank.log.events[step.event].nanoseconds;
      return time > begin && time < end;
    });
  }

  const Run& run_;
  std::filesystem::path path_;
  std::vector<Deed> deeds_;
  std::map<std::filesystem::path, uint64_t> since_;  // when a file came to be there
};

}  // namespace

void saving_in_place(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("SHARDS")) return;
  Folder folder(context.run());
  const auto* deed = folder.first_overwriting();
  if (!deed) return;
  const auto& change = *deed->change;
  const auto& file = change.action == FileAction::move ? change.new_path : change.path;
  const auto name = file.lexically_relative(context.run().ranks[0].folder).string();
  symptoms.push_back({.id = "saved_in_place",
                      .values = context.values(),
                      .evidence = {{"overwrites", {{"rank", deed->rank}, {"file", name}}}}});
}

}  // namespace checker::rules
