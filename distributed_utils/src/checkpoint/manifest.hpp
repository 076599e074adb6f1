#pragma once
/// The manifest of a checkpoint: see distributed_utils/checkpoint.hpp.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "distributed_utils/checkpoint.hpp"

namespace distributed_utils::detail {

inline constexpr const char* kManifestFile = "manifest.json";

/// What a file holds of a tensor: of a whole one all, so that offset is zero and local_shape the
/// global one.
struct TensorEntry {
  std::string file;
  std::string name;
  std::string dtype;
  std::vector<int64_t> global_shape;
  std::vector<int64_t> offset;
  std::vector<int64_t> local_shape;
};

/// A file, and what is in it.
struct FileEntry {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
  std::vector<TensorEntry> tensors;
};

struct Manifest {
  int64_t step = 0;
  int world_size = 1;
  Scalars scalars;
  std::vector<FileEntry> files;
  std::vector<std::vector<size_t>> bucket_indices;
  std::string sha256;  // of the text, as the text itself says; set by manifest_from_text
};

std::string to_text(const Manifest& manifest);

/// Throws Error, naming `file`, for any text that to_text did not make.
Manifest manifest_from_text(std::string_view text, const std::filesystem::path& file);

/// For the way to rank 0, who writes the manifest.
std::string to_text(const std::vector<FileEntry>& files);
std::vector<FileEntry> files_from_text(const std::string& text);

}  // namespace distributed_utils::detail
