#pragma once
/// The files of a checkpoint: writing them with a hash, and checking them against it.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "distributed_utils/placement.hpp"

namespace distributed_utils::detail {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// "rank-0.safetensors".
std::string rank_file(int rank);

/// Writes tensors to folder/name, on disk when it returns, and says what it wrote. Throws Error,
/// also if two pieces have one name.
FileEntry write_tensors(const std::filesystem::path& folder, const std::string& name,
                        std::vector<Placement> pieces,
                        const std::map<std::string, std::string>& metadata = {});

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

/// Throws Error if there is none or if it is damaged.
Manifest read_any_manifest(const std::filesystem::path& folder);

/// The same for a checkpoint's; throws Error too if it is that of another folder.
Manifest read_manifest(const std::filesystem::path& folder);

/// Throws Error, naming the file, unless it is of this size and hash.
void check_file(const std::filesystem::path& folder, const FileEntry& file);

/// read_manifest, and check_file of all files that it names.
Manifest check_all(const std::filesystem::path& folder);

/// Reads a file of whole tensors that check_file found good. Throws Error for one that holds parts,
/// or that the manifest does not name.
StateDict read_tensors(const std::filesystem::path& folder, const Manifest& manifest,
                       const std::string& name);

}  // namespace distributed_utils::detail
