#include "distributed_utils/sharded_model.hpp"

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/announced.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/cover.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/shard_files.hpp"
#include "files/atomic_folder.hpp"
#include "files/file_error.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;
using detail::FileEntry;

/// What this rank writes of model or optimizer; nothing if lower ranks hold all of it.
void write_shard(const fs::path& folder, const std::string& name,
                 const std::vector<Placement>& pieces, std::vector<FileEntry>& files) {
  if (pieces.empty()) return;
  if (!fs::is_directory(folder)) {
    detail::fail_at(folder,
                    "rank 0 made this folder, but this rank does not see it. Fix: give all ranks "
                    "the same folder, on a file system that all ranks see");
  }
  files.push_back(detail::write_tensors(folder, name, pieces, detail::sharding_metadata(pieces)));
}

/// The model's and the optimizer's files have names of their own, so that nothing is said of both.
void check_saved(const fs::path& folder, const std::vector<FileEntry>& files) {
  std::vector<FileEntry> model, optimizer;
  for (const auto& file : files) {
    (detail::is_optimizer_shard(file.name) ? optimizer : model).push_back(file);
  }
  detail::check_cover(folder, model);
  detail::check_cover(folder, optimizer);
}

void save_shards(const torch::nn::Module& model, const torch::optim::Optimizer* optimizer,
                 const fs::path& folder, const Group& group) {
  const int rank = get_rank(group);
  const fs::path temporary = detail::temporary_of(folder);
  detail::Manifest manifest = {.step = 0,
                               .world_size = get_world_size(group),
                               .scalars = {},
                               .files = {},
                               .bucket_indices = {},
                               .sha256 = {}};
  std::vector<Placement> model_pieces, optimizer_pieces;
  const auto begin = [&] {
    if (rank == 0) detail::begin_shards(folder);
    model_pieces = placements(model);
    if (optimizer != nullptr) optimizer_pieces = detail::optimizer_placements(*optimizer, model);
    return detail::announce(0, model_pieces, optimizer_pieces);
  };
  detail::Announced announced;
  const auto write = [&] {
    std::vector<FileEntry> files;
    write_shard(temporary, detail::model_shard(rank),
                detail::pieces_to_write(model_pieces, rank, announced.model), files);
    write_shard(temporary, detail::optimizer_shard(rank),
                detail::pieces_to_write(optimizer_pieces, rank, announced.optimizer), files);
    return detail::to_text(files);
  };
  const auto commit = [&] {
    if (rank != 0) return std::string();
    check_saved(folder, manifest.files);
    detail::write_manifest(temporary, manifest);
    detail::commit_folder(temporary, folder);
    return std::string();
  };
  try {
    announced = detail::read_announced(detail::together(group, begin));
    for (const auto& text : detail::together(group, write)) {
      for (auto& file : detail::files_from_text(text)) manifest.files.push_back(std::move(file));
    }
    detail::together(group, commit);
  } catch (...) {
    std::error_code ignored;  // nobody writes any more: all ranks are past what failed
    if (rank == 0) fs::remove_all(temporary, ignored);
    throw;
  }
}

}  // namespace

void save_sharded_model(const torch::nn::Module& model, const fs::path& folder,
                        const Group& group) {
  save_shards(model, nullptr, detail::without_slash(folder), group);
}

void save_sharded_model(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const fs::path& folder, const Group& group) {
  save_shards(model, &optimizer, detail::without_slash(folder), group);
}

}  // namespace distributed_utils
