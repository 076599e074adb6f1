#include "checkpoint/shard_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"
#include "files/whole_numbers.hpp"

namespace distributed_utils::detail {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Names of torch.distributed.checkpoint (_hf_utils.py).
constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kSavedOffsets = "saved_offsets";

std::string shard(int rank, const char* of) {
  return fmt::format("shard-{:05}-{}-00001-of-00001.safetensors", rank + 1, of);
}

/// Where the pieces of a file begin. Files without such metadata hold whole tensors.
std::map<std::string, std::vector<int64_t>> offsets_in(const fs::path& path,
                                                       const SafetensorsFile& file) {
  std::map<std::string, std::vector<int64_t>> result;
  const auto found = file.metadata().find(kShardingInfo);
  try {
    if (found != file.metadata().end()) {
      const json info = json::parse(found->second);
      for (const auto& [name, entry] : info.items()) {
        result.emplace(name, whole_numbers(path, entry.at(kSavedOffsets), "the begin of " + name));
      }
    } else {
      for (const auto& name : file.names()) {
        result.emplace(name, std::vector<int64_t>(file.head(name).shape.size(), 0));
      }
    }
  } catch (const json::exception& error) {
    fail_at(path, fmt::format("its DCP_SHARDING_INFO is damaged: {}", error.what()));
  }
  return result;
}

TensorEntry entry_of(const fs::path& path, const TensorHead& head,
                     const std::vector<int64_t>& offset) {
  TensorEntry entry = {.file = path.filename().string(),
                       .name = head.name,
                       .dtype = dtype_name(head.type),
                       .global_shape = head.shape,
                       .offset = offset,
                       .local_shape = head.shape};
  bool fits = offset.size() == head.shape.size();
  for (size_t i = 0; fits && i < offset.size(); ++i) {
    fits =
        offset[i] >= 0 && !__builtin_add_overflow(head.shape[i], offset[i], &entry.global_shape[i]);
  }
  if (!fits) {
    fail_at(path, fmt::format("its DCP_SHARDING_INFO says that '{}', of shape [{}], begins at [{}]",
                              head.name, fmt::join(head.shape, ", "), fmt::join(offset, ", ")));
  }
  return entry;
}

bool may_be_replaced(const fs::directory_entry& entry) {
  const auto name = entry.path().filename().string();
  return name == kManifestFile || (name.starts_with("shard-") && name.ends_with(".safetensors"));
}

}  // namespace

std::string model_shard(int rank) { return shard(rank, "model"); }
std::string optimizer_shard(int rank) { return shard(rank, "optimizer"); }

bool is_optimizer_shard(const std::string& name) {
  return name.starts_with("shard-") && name.find("-optimizer-") != std::string::npos;
}

std::map<std::string, std::string> sharding_metadata(const std::vector<Placement>& pieces) {
  json offsets = json::object();
  for (const auto& piece : pieces) offsets[piece.name] = {{kSavedOffsets, piece.offset}};
  return {{"format", "pt"}, {"DCP_VERSION", "1.0"}, {kShardingInfo, offsets.dump()}};
}

std::vector<std::string> shards_in(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    fail_at(folder, "is missing. Fix: name the folder that save_sharded_model wrote");
  }
  if (!fs::is_directory(status)) {
    fail_at(folder, "is not a folder. Fix: load(model, file) loads a file with a whole model");
  }
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (name.ends_with(".safetensors")) names.push_back(name);
  }
  if (error) fail_at(folder, "cannot be listed: " + error.message());
  std::ranges::sort(names);
  return names;
}

FileEntry read_shard_head(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) fail_at(path, "is not a regular file");
  const SafetensorsFile file(path);
  const auto offsets = offsets_in(path, file);
  FileEntry result = {
      .name = name, .size = fs::file_size(path, error), .sha256 = {}, .tensors = {}};
  for (const auto& tensor : file.names()) {
    const auto offset = offsets.find(tensor);
    if (offset == offsets.end()) {
      fail_at(path, fmt::format("its DCP_SHARDING_INFO does not say where '{}' begins", tensor));
    }
    result.tensors.push_back(entry_of(path, file.head(tensor), offset->second));
  }
  if (offsets.size() != result.tensors.size()) {
    fail_at(path, "its DCP_SHARDING_INFO names a tensor that is not in it");
  }
  return result;
}

void infer_global_shapes(std::vector<FileEntry>& files) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& file : files) {
    for (const auto& part : file.tensors) {
      auto& shape = shapes.emplace(part.name, part.global_shape).first->second;
      if (shape.size() != part.global_shape.size()) continue;  // check_cover refuses it
      for (size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], part.global_shape[i]);
    }
  }
  for (auto& file : files) {
    for (auto& part : file.tensors) {
      const auto& shape = shapes.at(part.name);
      if (shape.size() == part.global_shape.size()) part.global_shape = shape;
    }
  }
}

fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

fs::path temporary_of(const fs::path& folder) {
  return folder.parent_path() / fmt::format(".{}.tmp", folder.filename().string());
}

void begin_shards(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    fail_at(folder, "exists and is not a folder. Fix: remove it, or save elsewhere");
  }
  error.clear();
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (may_be_replaced(*entry)) continue;
    fail_at(folder, fmt::format("saving would remove '{}', which does not belong to a sharded "
                                "model. Fix: save to another folder",
                                entry->path().filename().string()));
  }
  const fs::path temporary = temporary_of(folder);
  fs::remove_all(temporary, error);  // what a killed run has left
  if (error) fail_at(temporary, "cannot be removed: " + error.message());
  fs::create_directories(temporary, error);
  if (error) fail_at(temporary, "cannot be made: " + error.message());
}

}  // namespace distributed_utils::detail
