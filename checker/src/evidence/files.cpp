#include "evidence/files.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "evidence/folders.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

using instrumentation::FileAction;

constexpr size_t kFiles = 1000;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  auto entry = fs::recursive_directory_iterator(
      folder, fs::directory_options::skip_permission_denied, ignored);
  for (; !ignored && entry != fs::end(entry) && files.size() < kFiles; entry.increment(ignored)) {
    if (!entry->is_directory(ignored)) files.push_back(entry->path().lexically_relative(folder));
  }
  std::ranges::sort(files);
  return files;
}

struct Change {
  size_t rank;
  const FileChange* change;
};

std::vector<Change> in_order(const Run& run) {
  std::vector<Change> all;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    for (const auto& change : run.ranks[rank].file_changes) all.push_back({rank, &change});
  }
  std::ranges::stable_sort(all, {}, [](const Change& seen) { return seen.change->nanoseconds; });
  return all;
}

// Follows the changes of all ranks: whose work each file holds, and who has ever written it.
class Writers {
 public:
  explicit Writers(const Run& run) {
    for (const auto& [rank, change] : in_order(run)) take(rank, *change);
  }

  std::set<size_t> of(const fs::path& path) const { return at(now_, path); }
  // Also where nothing of it is left: they have written at the same place.
  std::vector<fs::path> written_over_rank_0(size_t rank) const {
    std::vector<fs::path> paths;
    for (const auto& [path, ranks] : ever_) {
      if (rank != 0 && ranks.contains(0) && ranks.contains(rank)) paths.push_back(path);
    }
    return paths;
  }
  const std::optional<ChangeByRank>& first_foreign() const { return foreign_; }

 private:
  using ByPath = std::map<fs::path, std::set<size_t>>;

  static std::set<size_t> at(const ByPath& all, const fs::path& path) {
    const auto found = all.find(path);
    return found == all.end() ? std::set<size_t>() : found->second;
  }

  void take(size_t rank, const FileChange& change) {
    if (change.action == FileAction::write) {
      now_[change.path].insert(rank);
      ever_[change.path].insert(rank);
      return;
    }
    const auto known = at(ever_, change.path);
    if (!foreign_ && rank != 0 && known.contains(0) && !known.contains(rank)) {
      foreign_ = ChangeByRank{.rank = rank, .change = change};
    }
    auto moved = inside(change.path);
    for (const auto& [path, writers] : moved) now_.erase(path);
    if (change.action == FileAction::remove) return;
    for (auto& [path, writers] : moved) {
      // Who moves a folder has not written what lies in it.
      if (path == change.path) writers.insert(rank);
      const auto to = path == change.path ? change.new_path
                                          : change.new_path / path.lexically_relative(change.path);
      ever_[to].insert(writers.begin(), writers.end());
      now_[to] = std::move(writers);
    }
  }

  // What is there of this path: the file, or the files in a folder.
  ByPath inside(const fs::path& path) const {
    ByPath found;
    for (const auto& [file, writers] : now_) {
      if (lies_in(file, path)) found.emplace(file, writers);
    }
    return found;
  }

  ByPath now_, ever_;
  std::optional<ChangeByRank> foreign_;
};

}  // namespace

void tell_files(Run& run, const fs::path& world) {
  const auto shared = shared_folder_of(world);
  if (!fs::exists(shared)) {
    for (auto& rank : run.ranks) rank.files = files_in(rank.folder);
    return;
  }
  const Writers writers(run);
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    auto& files = run.ranks[rank].files;
    files.clear();
    for (const auto& path : writers.written_over_rank_0(rank))
      files.push_back(path.lexically_relative(shared.lexically_normal()));
  }
  for (const auto& file : files_in(shared)) {
    auto who = writers.of((shared / file).lexically_normal());
    if (who.empty()) who.insert(0);
    for (const size_t rank : who) {
      auto& files = run.ranks[rank].files;
      if (std::ranges::find(files, file) == files.end()) files.push_back(file);
    }
  }
}

std::optional<ChangeByRank> first_foreign_change(const Run& run) {
  return Writers(run).first_foreign();
}

bool changed_by_others(const Run& run, size_t rank, const FileChange& change) {
  for (size_t other = 0; other < run.ranks.size(); ++other) {
    if (other == rank) continue;
    for (const auto& seen : run.ranks[other].file_changes) {
      if (seen.path == change.path || seen.new_path == change.path) return true;
    }
  }
  return false;
}

}  // namespace checker
