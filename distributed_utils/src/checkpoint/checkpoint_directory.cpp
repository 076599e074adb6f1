#include "checkpoint/checkpoint_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include "distributed_utils/error.hpp"
#include "files/atomic_folder.hpp"

namespace distributed_utils::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kHiddenPrefix = ".step-";
constexpr std::string_view kHiddenSuffix = ".tmp";

[[noreturn]] void fail(const fs::path& path, const char* doing, const std::error_code& error) {
  throw Error(fmt::format("{}: cannot {} it: {}.", path.string(), doing, error.message()));
}

/// nullopt for what is not a checkpoint's name.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (parsed.ec != std::errc() || parsed.ptr != end || step < 0) return std::nullopt;
  return checkpoint_name(step) == name ? std::optional(step) : std::nullopt;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) fail(directory, "list", error);
  return names;
}

bool is_hidden(const std::string& name) {
  return name.starts_with(kHiddenPrefix) && name.ends_with(kHiddenSuffix);
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("{}{:09}", kPrefix, step); }

std::vector<int64_t> checkpoint_steps(const fs::path& directory) {
  std::vector<int64_t> steps;
  for (const auto& name : names_in(directory)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path temporary_folder(const fs::path& directory, int64_t step) {
  return directory / fmt::format(".{}{}", checkpoint_name(step), kHiddenSuffix);
}

void begin_checkpoint(const fs::path& directory, int64_t step, bool create) {
  std::error_code error;
  if (create) fs::create_directories(directory, error);
  if (error) fail(directory, "make", error);
  if (!fs::exists(directory, error)) {
    throw Error(
        fmt::format("{}: has disappeared, with the checkpoints in it. Fix: bring it back (is its "
                    "file system still mounted?), or save elsewhere.",
                    directory.string()));
  }
  const auto steps = checkpoint_steps(directory);
  if (!steps.empty() && steps.back() > step) {
    throw Error(
        fmt::format("{}: it holds {}, which is later than step {}. Fix: resume from it, remove it, "
                    "or save elsewhere.",
                    directory.string(), checkpoint_name(steps.back()), step));
  }
  for (const auto& name : names_in(directory)) {
    if (is_hidden(name)) fs::remove_all(directory / name, error);
    if (error) fail(directory / name, "remove", error);
  }
  const fs::path folder = temporary_folder(directory, step);
  fs::create_directory(folder, error);
  if (error) fail(folder, "make", error);
}

void commit_checkpoint(const fs::path& directory, int64_t step) {
  commit_folder(temporary_folder(directory, step), directory / checkpoint_name(step));
}

void discard_checkpoint(const fs::path& directory, int64_t step) noexcept {
  std::error_code ignored;
  fs::remove_all(temporary_folder(directory, step), ignored);
}

void prune_checkpoints(const fs::path& directory, int keep) noexcept try {
  auto steps = checkpoint_steps(directory);
  steps.resize(steps.size() - std::min(steps.size(), static_cast<size_t>(keep)));
  for (const int64_t step : steps) {
    // Hidden first: half of a checkpoint must not have a name.
    const fs::path hidden = temporary_folder(directory, step);
    if (std::rename((directory / checkpoint_name(step)).c_str(), hidden.c_str()) == 0) {
      discard_checkpoint(directory, step);
    }
  }
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next save tries again
}

}  // namespace distributed_utils::detail
