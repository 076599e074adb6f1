#include "grade/submission.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "grade/gather.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace fs = std::filesystem;

namespace {

std::string without_ending(std::string name) {
  for (const char* end : {".zip", ".tgz", ".txz", ".7z", ".gz", ".xz", ".bz2", ".zst", ".tar"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  return name;
}

// Of the thing itself, not of what a link leads to.
struct stat status_of(const fs::path& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  return status;
}

void look_at(const fs::path& path, Submission& submission, std::string& described) {
  const auto status = status_of(path);
  described += path.string() + "\n" + std::to_string(status.st_size) + " " +
               std::to_string(status.st_mtim.tv_sec) + "." +
               std::to_string(status.st_mtim.tv_nsec) + "\n";
  if (S_ISDIR(status.st_mode)) return;
  submission.handed_in =
      std::max(submission.handed_in, Time(std::chrono::seconds(status.st_mtim.tv_sec)));
}

void look_at_all(Submission& submission) {
  std::string described;
  look_at(submission.path, submission, described);
  if (!submission.archive) {
    std::vector<fs::path> files;
    std::error_code failure;
    const auto skip = fs::directory_options::skip_permission_denied;
    for (auto entry = fs::recursive_directory_iterator(submission.path, skip, failure);
         !failure && entry != fs::end(entry) && files.size() < kMostEntries;
         entry.increment(failure)) {
      files.push_back(entry->path());
    }
    std::ranges::sort(files);
    for (const auto& file : files) look_at(file, submission, described);
  }
  submission.stamp = fingerprint(described);
}

}  // namespace

Submissions find_submissions(const fs::path& folder) {
  Submissions found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    Submission one{.name = entry.path().filename().string(), .path = entry.path(), .stamp = ""};
    const auto type = entry.symlink_status().type();
    one.archive = type == fs::file_type::regular && is_archive(one.name);
    if (!one.archive && type != fs::file_type::directory) {
      found.ignored.push_back(one.name);
      continue;
    }
    if (one.archive) one.name = without_ending(one.name);
    look_at_all(one);
    found.all.push_back(std::move(one));
  }
  if (failure) throw Error("Cannot read " + folder.string() + ": " + failure.message() + ".");
  if (found.all.empty()) {
    throw Error(folder.string() +
                " holds no hand-in. Fix: put a folder or an archive (.zip, .tar.gz, ...) there for "
                "each student.");
  }
  std::ranges::sort(found.all, {}, &Submission::name);
  std::ranges::sort(found.ignored);
  const auto twice = std::ranges::adjacent_find(found.all, {}, &Submission::name);
  if (twice != found.all.end()) {
    throw Error("Two hand-ins have the same name: " + twice->path.string() + " and " +
                std::next(twice)->path.string() + ". Fix: rename one of them.");
  }
  return found;
}

}  // namespace checker::grade
