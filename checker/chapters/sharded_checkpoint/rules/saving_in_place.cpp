// While the ranks save a model, the one that they saved before is still there: whoever is killed
// then has not lost both.
#include <algorithm>
#include <map>
#include <set>
#include <string>

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

  // The first that removes what was saved before, while what takes its place is not complete.
  const Deed* first_removing_too_early() const {
    for (size_t i = 0; i < deeds_.size(); ++i) {
      const auto& change = *deeds_[i].change;
      if (change.action == FileAction::remove && lies_inside(change.path) && removes_too_early(i)) {
        return &deeds_[i];
      }
    }
    return nullptr;
  }

 private:
  bool removes_too_early(size_t removal) const {
    const auto next = filled_after(removal);
    if (next == deeds_.size()) return false;  // it stays away: another rule's
    const auto trained = last_step_before(deeds_[removal].change->nanoseconds);
    if (!was_filled_before(trained)) return false;
    const auto& made = deeds_[next].change->path;
    const bool written_later =
        std::any_of(deeds_.begin() + removal, deeds_.begin() + next, [&](const Deed& deed) {
          return deed.change->action == FileAction::write && lies_in(deed.change->path, made);
        });
    return written_later && !is_saved_elsewhere(removal, next, trained);
  }

  // Where another folder takes this one's name.
  size_t filled_after(size_t removal) const {
    size_t next = removal;
    while (next < deeds_.size() && !is_filled_by(*deeds_[next].change)) ++next;
    return next;
  }

  bool is_filled_by(const FileChange& change) const {
    return change.action == FileAction::move && change.new_path == path_;
  }

  bool was_filled_before(uint64_t time) const {
    return std::ranges::any_of(deeds_, [&](const Deed& deed) {
      return deed.change->nanoseconds < time && is_filled_by(*deed.change);
    });
  }

  // As many files as are removed have been written elsewhere since the model was trained.
  bool is_saved_elsewhere(size_t removal, size_t next, uint64_t trained) const {
    std::set<std::filesystem::path> written, removed;
    for (size_t i = 0; i < next; ++i) {
      const auto& change = *deeds_[i].change;
      const bool is_new = i < removal && change.nanoseconds > trained;
      if (is_new && change.action == FileAction::write) written.insert(change.path);
      if (i < removal || change.action != FileAction::remove || !lies_inside(change.path)) continue;
      removed.insert(change.path);
    }
    return written.size() >= removed.size();
  }

  uint64_t last_step_before(uint64_t end) const {
    uint64_t last = 0;
    for (const auto& step : run_.ranks[0].steps) {
      const auto time = run_.ranks[0].log.events[step.event].nanoseconds;
      if (time < end) last = std::max(last, time);
    }
    return last;
  }

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
  const std::string done = deed ? "overwrites" : "removes";
  if (!deed) deed = folder.first_removing_too_early();
  if (!deed) return;
  const auto& change = *deed->change;
  const auto& file = change.action == FileAction::move ? change.new_path : change.path;
  const auto name = file.lexically_relative(context.run().ranks[0].folder).string();
  symptoms.push_back({.id = "saved_in_place",
                      .values = context.values(),
                      .evidence = {{done, {{"rank", deed->rank}, {"file", name}}}}});
}

}  // namespace checker::rules
