#include <fmt/format.h>

#include <utility>

#include "checkpoint/checkpoint_directory.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/generator_state.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/save.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

using detail::FileEntry;

StateDict rank_tensors(const torch::nn::Module& model, const StateDict& rank_state) {
  StateDict tensors = detail::generator_states(model);
  for (const auto& [name, tensor] : rank_state) tensors.emplace("state." + name, tensor);
  return tensors;
}

/// Throws Error, the same on all ranks.
void check_same(const std::vector<std::string>& steps) {
  for (size_t rank = 1; rank < steps.size(); ++rank) {
    if (steps[rank] == steps[0]) continue;
    throw Error(fmt::format(
        "Checkpoints::save: rank 0 saves step {}, but rank {} saves step {}. Mend: call "
        "it on all ranks after the same step.",
        steps[0], rank, steps[rank]));
  }
}

}  // namespace

Checkpoints::Checkpoints(std::filesystem::path directory, const CheckpointOptions& options)
    : directory_(std::move(directory)), options_(options) {
  if (options.keep < 1) {
    throw Error(
        fmt::format("Checkpoints: keep {}, which would keep none. Mend: 1 or more.", options.keep));
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
  if (auto* ddp = dynamic_cast<DistributedDataParallelBase*>(&model)) {
    manifest.bucket_indices = ddp->settle_buckets();
  }
  const auto begin = [&] {
    if (step < 0) throw Error(fmt::format("Checkpoints::save: step {} is less than 0.", step));
    if (rank == 0) detail::begin_checkpoint(directory_, step, !existed_);
    return std::to_string(step);
  };
  const auto write = [&] {
    std::vector<FileEntry> files;
    const auto add = [&](const std::string& name, const StateDict& tensors) {
      files.push_back(detail::write_tensors(folder, name, tensors));
    };
    if (rank == 0) {
      add(detail::kModelFile, state_dict(model));
      add(detail::kOptimizerFile, optimizer_state_dict(optimizer, model));
    }
    add(detail::rank_file(rank), rank_tensors(model, rank_state));
    return detail::to_text(files);
  };
  const auto commit = [&] {
    if (rank == 0) {
      detail::write_manifest(folder, manifest);
      detail::commit_checkpoint(directory_, step);
    }
    return std::string();
  };
  try {
    check_same(detail::together(group, begin));
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
