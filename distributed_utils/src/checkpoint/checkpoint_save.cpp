#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "checkpoint/announced.hpp"
#include "checkpoint/checkpoint_directory.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/cover.hpp"
#include "checkpoint/generator_state.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/saved_tensors.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/placement.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

using detail::FileEntry;
using Descriptions = std::vector<std::string>;

StateDict rank_tensors(const torch::nn::Module& model, const StateDict& rank_state) {
  StateDict tensors = detail::generator_states(model);
  for (const auto& [name, tensor] : rank_state) tensors.emplace("state." + name, tensor);
  return tensors;
}

/// Throws Error, the same on all ranks, if they save different steps.
void check_steps(const std::vector<int64_t>& steps) {
  for (size_t rank = 1; rank < steps.size(); ++rank) {
    if (steps[rank] == steps[0]) continue;
    throw Error(
        fmt::format("Checkpoints::save: rank 0 saves step {}, but rank {} saves step {}. Fix: call "
                    "it on all ranks after the same step.",
                    steps[0], rank, steps[rank]));
  }
}

/// The files in which this rank writes what it holds of a model or an optimizer: replicated tensors
/// in `name`, which only rank 0 writes, and its parts of others in a file of its own.
std::vector<FileEntry> write_pieces(const std::filesystem::path& folder, const std::string& name,
                                    const std::vector<Placement>& pieces, int rank,
                                    const std::vector<Descriptions>& announced) {
  std::vector<Placement> whole, parts;
  for (auto& piece : detail::pieces_to_write(pieces, rank, announced)) {
    (piece.replicated ? whole : parts).push_back(std::move(piece));
  }
  std::vector<FileEntry> files;
  if (rank == 0) files.push_back(detail::write_tensors(folder, name, whole));
  if (!parts.empty()) {
    files.push_back(detail::write_tensors(folder, detail::part_file(name, rank), parts));
  }
  return files;
}

/// Throws Error unless the files hold each tensor of model and optimizer once. Names are the
/// model's or the optimizer's, so each is looked at by itself.
void check_whole(const std::filesystem::path& folder, const std::vector<FileEntry>& files) {
  for (const std::string_view of : {"model", "optimizer"}) {
    std::vector<FileEntry> chosen;
    for (const auto& file : files) {
      if (file.name.starts_with(of)) chosen.push_back(file);
    }
    detail::check_cover(folder, chosen);
  }
}

}  // namespace

Checkpoints::Checkpoints(std::filesystem::path directory, const CheckpointOptions& options)
    : directory_(std::move(directory)), options_(options) {
  if (options.keep < 1) {
    throw Error(fmt::format(
        "Checkpoints: keep is {}, which would keep none. Fix: set it to 1 or more.", options.keep));
  }
}

void Checkpoints::save(int64_t step, torch::nn::Module& model,
                       const torch::optim::Optimizer& optimizer, const Scalars& scalars,
                       const StateDict& rank_state) {
  const Group& group = options_.group;
  const int rank = get_rank(group);
  const auto folder = detail::temporary_folder(directory_, step);
  detail::Manifest manifest = {.step = step,
                               .world_size = get_world_size(group),
                               .scalars = scalars,
                               .files = {},
                               .bucket_indices = {},
                               .sha256 = {}};
  if (auto* placed = dynamic_cast<Placed*>(&model)) {
    manifest.bucket_indices = placed->settle_buckets();
  }
  std::vector<Placement> model_pieces, optimizer_pieces;
  detail::Announced announced;
  const auto begin = [&] {
    if (step < 0) throw Error(fmt::format("Checkpoints::save: step {} is less than 0.", step));
    if (rank == 0) detail::begin_checkpoint(directory_, step, !existed_);
    model_pieces = placements(model);
    optimizer_pieces = detail::optimizer_placements(optimizer, model);
    return detail::announce(step, model_pieces, optimizer_pieces);
  };
  const auto write = [&] {
    auto files = write_pieces(folder, detail::kModelFile, model_pieces, rank, announced.model);
    for (auto& file : write_pieces(folder, detail::kOptimizerFile, optimizer_pieces, rank,
                                   announced.optimizer)) {
      files.push_back(std::move(file));
    }
    files.push_back(
        detail::write_tensors(folder, detail::rank_file(rank),
                              detail::whole_placements(rank_tensors(model, rank_state))));
    return detail::to_text(files);
  };
  const auto commit = [&] {
    if (rank == 0) {
      check_whole(directory_ / detail::checkpoint_name(step), manifest.files);
      detail::write_manifest(folder, manifest);
      detail::commit_checkpoint(directory_, step);
    }
    return std::string();
  };
  try {
    announced = detail::read_announced(detail::together(group, begin));
    check_steps(announced.steps);
    for (const auto& text : detail::together(group, write)) {
      const auto files = detail::files_from_text(text);
      manifest.files.insert(manifest.files.end(), files.begin(), files.end());
    }
    detail::together(group, commit);
  } catch (...) {
    // Nobody writes any more: all ranks are past what failed.
    if (rank == 0) detail::discard_checkpoint(directory_, step);
    throw;
  }
  existed_ = true;
  if (rank == 0) detail::prune_checkpoints(directory_, options_.keep);
}

}  // namespace distributed_utils
