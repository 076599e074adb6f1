#include "grade/gather.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "course/version.hpp"
#include "process/descriptor.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostRemarks = 20;
constexpr int kDeepest = 12;
constexpr std::array<std::string_view, 5> kIgnoredFolders{"solutions", "build", ".git", ".venv",
                                                          "checker"};

// Never follows a link, never waits for what is not a file.
std::string read_small(const fs::path& file) {
  const Descriptor opened(
      ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.get(), &status) != 0) {
    throw Error(std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) throw Error("is not a regular file");
  std::string text(kLargestText + 1, '\0');
  size_t got = 0;
  while (got < text.size()) {
    const auto more = ::read(opened.get(), text.data() + got, text.size() - got);
    if (more < 0) throw Error(std::string("cannot be read: ") + std::strerror(errno));
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  if (got > kLargestText) throw Error("is larger than 1 MiB");
  text.resize(got);
  return text;
}

// "05" of "05.cpp", "05_train.cpp", "step_05.cpp", "solution-05.cpp" does not count.
std::string digits_of(std::string_view stem) {
  for (const std::string_view before : {"step_", "step-", "step"}) {
    if (stem.starts_with(before)) stem.remove_prefix(before.size());
  }
  const auto count = std::min(stem.find_first_not_of("0123456789"), stem.size());
  if (count != 2 || (stem.size() > 2 && stem[2] != '_' && stem[2] != '-' && stem[2] != ' ')) {
    return "";
  }
  return std::string(stem.substr(0, 2));
}

}  // namespace

bool Gatherer::place_of(const std::string& path, Place& place) const {
  const auto parts = split(path, '/');
  if (parts.empty()) return false;
  for (const auto& part : parts) {
    if (std::ranges::find(kIgnoredFolders, part) != kIgnoredFolders.end()) return false;
  }
  const fs::path name = parts.back();
  const bool job = name.extension() == ".sbatch";
  const std::string parent = parts.size() > 1 ? parts[parts.size() - 2] : "";
  const std::string above = parts.size() > 2 ? parts[parts.size() - 3] : "";
  const int depth = static_cast<int>(parts.size());
  for (const auto& step : steps_) {
    if (!job && parent == step.name &&
        std::ranges::find(step.files, name.string()) != step.files.end()) {
      place = {step.name, name.string(), above == "steps" ? depth : 100 + depth};
      return true;
    }
    if (job && name == step.name + ".sbatch") {
      place = {step.name, "", parent == "sbatch" ? depth : 100 + depth};
      return true;
    }
  }
  if (!job && name.extension() != ".cpp") return false;
  const auto number = digits_of(name.stem().string());
  for (const auto& step : steps_) {
    if (number.empty() || !step.name.starts_with(number)) continue;
    place = {step.name, job ? "" : step.files.front(), 1000 + depth};
    return true;
  }
  return false;
}

void Gatherer::offer(const std::string& path, const std::function<std::string()>& read) {
  const auto remark = [&](const std::string& what) {
    if (remarks_.size() < kMostRemarks) remarks_.push_back(path + " " + what);
  };
  try {
    if (fs::path(path).filename() == kVersionFile) version_ = std::string(trim(read()));
    Place place;
    if (!place_of(path, place)) return;
    auto& found = found_[{place.step, place.file}];
    const bool better = found.path.empty() || place.rank < found.rank ||
                        (place.rank == found.rank && path < found.path);
    if (!better) return remark("was left out: " + found.path + " is used instead");
    if (!found.path.empty())
      remarks_.push_back(found.path + " was left out: " + path + " is used instead");
    found = {place.rank, path, read()};
  } catch (const Error& error) {
    remark(error.what());
  }
}

void Gatherer::offer_other(const std::string& path, const std::string& what) {
  Place place;
  if (place_of(path, place)) remarks_.push_back(path + " is " + what + ", and was left out");
}

Gathered Gatherer::take() {
  Gathered all{.steps = {}, .remarks = std::move(remarks_), .version = std::move(version_)};
  if (all.remarks.size() > kMostRemarks) all.remarks.resize(kMostRemarks);
  for (auto& [key, found] : found_) {
    if (found.text.empty()) continue;
    auto& files = all.steps[key.first];
    (key.second.empty() ? files.job : files.program[key.second]) = std::move(found.text);
  }
  return all;
}

Gathered gather_folder(const std::string& folder, const std::vector<GradedStep>& steps) {
  Gatherer gatherer(steps);
  std::error_code failure;
  const auto skip = fs::directory_options::skip_permission_denied;
  auto entry = fs::recursive_directory_iterator(folder, skip, failure);
  if (failure) throw Unreadable("Cannot read " + folder + ": " + failure.message() + ".");
  size_t entries = 0;
  for (; entry != fs::end(entry); entry.increment(failure)) {
    if (failure) throw Unreadable("Cannot read " + folder + ": " + failure.message() + ".");
    if (++entries > kMostEntries) throw Unreadable("More than 100,000 files were handed in.");
    const auto& path = entry->path();
    const auto shown = path.lexically_relative(folder).string();
    const auto kind = entry->symlink_status(failure).type();
    if (kind == fs::file_type::directory) {
      const auto name = path.filename().string();
      const bool skipped = std::ranges::find(kIgnoredFolders, name) != kIgnoredFolders.end();
      if (skipped || entry.depth() >= kDeepest) entry.disable_recursion_pending();
    } else if (kind == fs::file_type::regular) {
      gatherer.offer(shown, [&] { return read_small(path); });
    } else {
      gatherer.offer_other(shown, kind == fs::file_type::symlink ? "a link" : "not a regular file");
    }
  }
  return gatherer.take();
}

void write_gathered(const Gathered& gathered, const std::string& folder) {
  const fs::path top = folder;
  for (const auto& [step, files] : gathered.steps) {
    for (const auto& [name, text] : files.program) write_file(top / "steps" / step / name, text);
    if (!files.job.empty()) write_file(top / "sbatch" / (step + ".sbatch"), files.job);
  }
  write_file(top / kRemarksFile, join(gathered.remarks, "\n"));
  write_file(top / kVersionFile, gathered.version);
}

}  // namespace checker::grade
