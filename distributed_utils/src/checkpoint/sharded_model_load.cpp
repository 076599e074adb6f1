#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/cover.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/restore.hpp"
#include "checkpoint/saved_tensors.hpp"
#include "checkpoint/shard_files.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;
using detail::FileEntry;
using detail::SavedTensors;

/// What rank 0 sees in the folder: the manifest's hash, which is empty if there is none, and the
/// files.
struct Found {
  std::string manifest;
  std::vector<std::string> files;
};

Found find_files(const fs::path& folder) {
  Found found = {.manifest = {}, .files = detail::shards_in(folder)};
  if (fs::exists(folder / detail::kManifestFile)) {
    const auto manifest = detail::read_any_manifest(folder);
    std::set<std::string> named;
    for (const auto& file : manifest.files) {
      if (!file.name.starts_with("shard-")) {
        detail::fail_at(folder,
                        "is a checkpoint of a run. Fix: Checkpoints::load_latest().restore()");
      }
      named.insert(file.name);
    }
    for (const auto& file : found.files) {
      if (named.contains(file)) continue;
      detail::fail_at(folder / file,
                      "is not named in the folder's manifest.json. Fix: move it out of the folder");
    }
    found.manifest = manifest.sha256;
  } else if (found.files.empty()) {
    detail::fail_at(folder,
                    "holds no *.safetensors file. Fix: name the folder that "
                    "save_sharded_model wrote");
  }
  return found;
}

/// Checks this rank's share of the files, and says what they hold if no manifest does.
std::string check_share(const fs::path& folder, const Found& found,
                        const std::vector<FileEntry>& named, int rank, int world_size) {
  std::vector<FileEntry> files;
  const size_t count = found.manifest.empty() ? found.files.size() : named.size();
  for (auto i = static_cast<size_t>(rank); i < count; i += static_cast<size_t>(world_size)) {
    if (found.manifest.empty()) {
      files.push_back(detail::read_shard_head(folder, found.files[i]));
    } else {
      detail::check_file(folder, named[i]);
    }
  }
  return detail::to_text(files);
}

/// What all files hold. One rank has checked each file.
std::vector<FileEntry> checked_files(const fs::path& folder, const Group& group) {
  const int rank = get_rank(group);
  const auto texts = detail::together(group, [&] {
    if (rank != 0) return std::string();
    const Found found = find_files(folder);
    return nlohmann::json({found.manifest, found.files}).dump();
  });
  const auto from_0 = nlohmann::json::parse(texts[0]);
  const Found found = {.manifest = from_0.at(0), .files = from_0.at(1)};
  std::vector<FileEntry> files;
  const auto shares = detail::together(group, [&] {
    if (!found.manifest.empty()) {
      const auto manifest = detail::read_any_manifest(folder);
      if (manifest.sha256 != found.manifest) {
        detail::fail_at(folder,
                        "its manifest.json differs from the one that rank 0 reads. Fix: use a "
                        "folder on a file system that all ranks see");
      }
      files = manifest.files;
    }
    return check_share(folder, found, files, rank, get_world_size(group));
  });
  if (!found.manifest.empty()) return files;
  for (const auto& share : shares) {
    for (auto& file : detail::files_from_text(share)) files.push_back(std::move(file));
  }
  return files;
}

/// What the folder's files hold of the model, or of the optimizer.
SavedTensors saved_in(const fs::path& folder, const std::vector<FileEntry>& files, bool optimizer) {
  std::vector<FileEntry> chosen;
  for (const auto& file : files) {
    if (detail::is_optimizer_shard(file.name) == optimizer) chosen.push_back(file);
  }
  if (optimizer && chosen.empty()) {
    detail::fail_at(folder,
                    "holds no optimizer state. Fix: load_sharded_model(model, folder), or save "
                    "with save_sharded_model(model, optimizer, folder)");
  }
  detail::infer_global_shapes(chosen);
  detail::check_cover(folder, chosen);
  return {folder, chosen, {}, /*checked=*/true};
}

/// Throws Error if a tensor was saved with another type than the piece has.
void check_type(const fs::path& folder, const SavedTensors& saved, const std::string& name,
                const at::Tensor& piece) {
  const std::string type = saved.type_of(name);
  const at::ScalarType saved_type = detail::scalar_type(folder, type);
  if (saved_type == piece.scalar_type()) return;
  detail::fail_at(folder,
                  fmt::format("'{}' was saved as {}, but the model has it as {}. Fix: convert the "
                              "model to {} before loading, and back afterwards",
                              name, c10::toString(saved_type), c10::toString(piece.scalar_type()),
                              c10::toString(saved_type)));
}

void check_pieces(const fs::path& folder, const SavedTensors& saved,
                  const std::vector<Placement>& pieces) {
  for (const auto& piece : pieces) {
    const auto* shape = saved.shape_of(piece.name);
    if (shape == nullptr) continue;  // prepare_load refuses it
    if (*shape != piece.global_shape) {
      detail::fail_at(
          folder,
          fmt::format(
              "'{}' has shape [{}] in its files, but [{}] in the model. Fix: use the configuration "
              "it was trained with, or bring back the file of its last rows, if that is missing",
              piece.name, fmt::join(*shape, ", "), fmt::join(piece.global_shape, ", ")));
    }
    check_type(folder, saved, piece.name, piece.tensor);
  }
}

/// Of what an optimizer keeps in the shape of a parameter, which it keeps in the parameter's type.
void check_optimizer_types(const fs::path& folder, const SavedTensors& saved,
                           const std::vector<Placement>& pieces) {
  std::unordered_map<std::string, const Placement*> known;
  for (const auto& piece : pieces) known.emplace(piece.name, &piece);
  for (const auto& name : saved.names()) {
    const auto found = known.find(name.substr(name.find('.') + 1));
    if (name.starts_with("step.") || found == known.end()) continue;
    check_type(folder, saved, name, found->second->tensor);
  }
}

void load_shards(torch::nn::Module& model, torch::optim::Optimizer* optimizer,
                 const fs::path& folder, const Group& group) {
  const auto files = checked_files(folder, group);
  const auto pieces = placements(model);
  const auto names = detail::names_of_all_ranks(group, pieces);
  std::function<void()> load_model;
  std::function<void()> load_optimizer = [] {};
  detail::together(group, [&] {
    SavedTensors saved = saved_in(folder, files, /*optimizer=*/false);
    check_pieces(folder, saved, pieces);
    load_model =
        detail::prepare_load(model, detail::read_pieces(saved, pieces, names, folder), folder);
    if (optimizer != nullptr) {
      SavedTensors state = saved_in(folder, files, /*optimizer=*/true);
      check_optimizer_types(folder, state, pieces);
      load_optimizer = detail::prepare_load(*optimizer, model,
                                            detail::read_optimizer_pieces(state, pieces, names));
    }
    return std::string();
  });
  load_model();
  load_optimizer();
}

}  // namespace

void load_sharded_model(torch::nn::Module& model, const fs::path& folder, const Group& group) {
  load_shards(model, nullptr, detail::without_slash(folder), group);
}

void load_sharded_model(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                        const fs::path& folder, const Group& group) {
  load_shards(model, &optimizer, detail::without_slash(folder), group);
}

}  // namespace distributed_utils
