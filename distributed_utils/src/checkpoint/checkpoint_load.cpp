#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "checkpoint/checkpoint_content.hpp"
#include "checkpoint/checkpoint_directory.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "distributed_utils/error.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;
using detail::checkpoint_name;

constexpr std::string_view kState = "state.";

/// What to do about a damaged checkpoint.
std::string advice(const fs::path& directory, int64_t damaged) {
  auto steps = detail::checkpoint_steps(directory);
  std::ranges::reverse(steps);
  for (const int64_t step : steps) {
    if (step >= damaged) continue;
    try {
      detail::check_all(directory / checkpoint_name(step));
      return fmt::format("Fix: remove {}; {} is good, and the run can resume from it.",
                         checkpoint_name(damaged), checkpoint_name(step));
    } catch (const Error&) {  // then an older one
      continue;
    }
  }
  return fmt::format(
      "Fix: remove {} and start from the beginning; no older checkpoint there is good.",
      checkpoint_name(damaged));
}

/// The step asked for, or the newest; nullopt if there is none.
std::optional<int64_t> choose(const fs::path& directory, const std::optional<int64_t>& wanted) {
  const auto steps = detail::checkpoint_steps(directory);
  if (!wanted) return steps.empty() ? std::nullopt : std::optional(steps.back());
  if (std::ranges::find(steps, *wanted) == steps.end()) {
    throw Error(
        fmt::format("{}: it holds no {}.{}", directory.string(), checkpoint_name(*wanted),
                    steps.empty() ? "" : " The newest is " + checkpoint_name(steps.back()) + "."));
  }
  return wanted;
}

/// On rank 0: "<step> <the manifest's hash>" of a checkpoint that is whole, or nothing.
std::string choose_whole(const fs::path& directory, const std::optional<int64_t>& wanted) {
  const auto step = choose(directory, wanted);
  if (!step) return {};
  try {
    return fmt::format("{} {}", *step,
                       detail::check_all(directory / checkpoint_name(*step)).sha256);
  } catch (const Error& error) {
    throw Error(fmt::format("{} {}", error.what(), advice(directory, *step)));
  }
}

/// A rank's file, taken apart.
struct RankTensors {
  StateDict generators;
  StateDict state;
};

RankTensors read_rank(const fs::path& folder, const detail::Manifest& manifest, int rank) {
  RankTensors result;
  for (const auto& [name, tensor] :
       detail::read_tensors(folder, manifest, detail::rank_file(rank))) {
    if (name.starts_with(kState)) {
      result.state.emplace(name.substr(kState.size()), tensor);
    } else {
      result.generators.emplace(name, tensor);
    }
  }
  return result;
}

/// Throws Error unless this rank sees what rank 0 has found whole.
void check_as_rank_0(const fs::path& folder, const detail::Manifest& manifest,
                     const std::string& hash, const std::vector<std::string>& files) {
  if (manifest.sha256 != hash) {
    throw Error(fmt::format("{}: differs from the manifest that rank 0 read.",
                            (folder / detail::kManifestFile).string()));
  }
  for (const auto& file : manifest.files) {
    if (std::ranges::find(files, file.name) != files.end()) detail::check_file(folder, file);
  }
}

/// The former ranks whose state goes to this one.
std::vector<int> former_ranks(int rank, int world_size, int former_world_size) {
  std::vector<int> ranks;
  for (int former = rank; former < former_world_size; former += world_size) ranks.push_back(former);
  return ranks;
}

}  // namespace

Checkpoint Checkpoints::load_latest() { return read(std::nullopt); }

Checkpoint Checkpoints::load(int64_t step) { return read(step); }

Checkpoint Checkpoints::read(const std::optional<int64_t>& step) {
  const Group& group = options_.group;
  const int rank = get_rank(group);
  const std::string chosen = detail::together(
      group, [&] { return rank == 0 ? choose_whole(directory_, step) : std::string(); })[0];
  if (chosen.empty()) return {};
  existed_ = true;

  auto content = std::make_unique<Checkpoint::Content>();
  content->group = group;
  const auto load = [&] {
    const size_t space = chosen.find(' ');
    int64_t chosen_step = 0;
    std::from_chars(chosen.data(), chosen.data() + space, chosen_step);
    content->folder = directory_ / checkpoint_name(chosen_step);
    content->manifest = detail::read_manifest(content->folder);
    const auto& manifest = content->manifest;
    const auto former = former_ranks(rank, get_world_size(group), manifest.world_size);
    std::vector<std::string> files = {detail::kModelFile, detail::kOptimizerFile};
    for (const int former_rank : former) files.push_back(detail::rank_file(former_rank));
    if (rank != 0) check_as_rank_0(content->folder, manifest, chosen.substr(space + 1), files);

    content->same_world = get_world_size(group) == manifest.world_size;
    const auto read_saved = [&](const std::string& name) {
      return detail::SavedTensors(content->folder, detail::part_files(manifest, name),
                                  detail::read_tensors(content->folder, manifest, name),
                                  /*checked=*/rank == 0);
    };
    content->model = read_saved(detail::kModelFile);
    content->optimizer = read_saved(detail::kOptimizerFile);
    for (const int former_rank : former) {
      RankTensors tensors = read_rank(content->folder, manifest, former_rank);
      if (content->same_world) content->generators = std::move(tensors.generators);
      content->rank_states.push_back(std::move(tensors.state));
    }
  };
  detail::together(group, [&] {
    try {
      load();
    } catch (const Error& error) {
      if (rank == 0) throw;
      throw Error(
          fmt::format("{} Rank 0 found this checkpoint complete. Fix: use a directory on a file "
                      "system that all ranks see.",
                      error.what()));
    }
    return std::string();
  });
  return Checkpoint(std::move(content));
}

std::optional<fs::path> latest(const fs::path& directory) {
  const auto step = choose(directory, std::nullopt);
  if (!step) return std::nullopt;
  return directory / checkpoint_name(*step);
}

}  // namespace distributed_utils
