#pragma once
/// The files of a sharded model: see distributed_utils/sharded_model.hpp.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "distributed_utils/placement.hpp"

namespace distributed_utils::detail {

/// "shard-00001-model-00001-of-00001.safetensors" of rank 0.
std::string model_shard(int rank);
std::string optimizer_shard(int rank);

/// Whether a file of this name holds an optimizer's state.
bool is_optimizer_shard(const std::string& name);

/// A header's "__metadata__", in which DCP finds where the pieces begin.
std::map<std::string, std::string> sharding_metadata(const std::vector<Placement>& pieces);

/// The folder's files of tensors, in the order of their names. Throws Error for what is not a
/// folder.
std::vector<std::string> shards_in(const std::filesystem::path& folder);

/// What a file's header says that it holds; a piece's global_shape is what is known of it, up to
/// the piece's end. Throws Error, naming the file, if it is damaged.
FileEntry read_shard_head(const std::filesystem::path& folder, const std::string& name);

/// Makes each tensor's global_shape the one that its pieces together come to.
void infer_global_shapes(std::vector<FileEntry>& files);

/// "a/b" of "a/b/", which names the same folder.
std::filesystem::path without_slash(const std::filesystem::path& folder);

/// The hidden folder in which a sharded model is made.
std::filesystem::path temporary_of(const std::filesystem::path& folder);

/// Makes it, empty, and the folders above it. Throws Error if that fails, and if the folder is
/// there and holds what no sharded model does.
void begin_shards(const std::filesystem::path& folder);

}  // namespace distributed_utils::detail
