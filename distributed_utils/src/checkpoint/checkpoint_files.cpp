#include "checkpoint/checkpoint_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "checkpoint/checkpoint_directory.hpp"
#include "files/atomic_file.hpp"
#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"
#include "files/sha256.hpp"

namespace distributed_utils::detail {
namespace {

namespace fs = std::filesystem;

/// A regular file's size; a name that stands for anything else must not be opened.
uint64_t size_of(const fs::path& file, const std::string& content = {}) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) fail_at(file, "is missing" + content);
  if (!fs::is_regular_file(status)) fail_at(file, "is not a regular file");
  const uint64_t size = fs::file_size(file, error);
  if (error) fail_at(file, "cannot be read: " + error.message());
  return size;
}

/// Passes a file's bytes on, piece by piece.
void read(const fs::path& file, const std::function<void(const char*, size_t)>& use) {
  std::ifstream stream(file, std::ios::binary);
  std::string piece(size_t{1} << 20, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
         stream.gcount() > 0) {
    use(piece.data(), static_cast<size_t>(stream.gcount()));
  }
  if (!stream.eof()) fail_at(file, fmt::format("cannot be read: {}", std::strerror(errno)));
}

/// Which tensors are not whole without this file, for its errors; nothing if there are none.
std::string parts_in(const FileEntry& file) {
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors) {
    if (tensor.local_shape != tensor.global_shape) names.push_back("'" + tensor.name + "'");
  }
  if (names.empty()) return {};
  return fmt::format(" (it holds parts of {})", fmt::join(names, ", "));
}

const FileEntry& entry_of(const fs::path& folder, const Manifest& manifest,
                          const std::string& name) {
  const auto found = std::ranges::find(manifest.files, name, &FileEntry::name);
  if (found == manifest.files.end()) fail_at(folder / name, "is not named in the manifest");
  return *found;
}

}  // namespace

std::string rank_file(int rank) { return fmt::format("rank-{}.safetensors", rank); }

FileEntry write_tensors(const fs::path& folder, const std::string& name,
                        std::vector<Placement> pieces,
                        const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(pieces, {}, &Placement::name);
  StateDict tensors;
  for (const auto& piece : pieces) {
    if (tensors.emplace(piece.name, piece.tensor).second) continue;
    fail_at(folder / name, fmt::format("this rank holds two pieces named '{}'", piece.name));
  }
  FileEntry entry = {.name = name, .size = 0, .sha256 = {}, .tensors = {}};
  AtomicFile file(folder / name);
  Sha256 hash;  // of what was meant to be written, whatever the disk makes of it
  write_safetensors(tensors, folder / name, metadata, [&](const void* data, size_t size) {
    file.write(data, size);
    hash.update(data, size);
    entry.size += size;
  });
  file.commit();
  entry.sha256 = hash.hex();
  for (const auto& piece : pieces) {
    entry.tensors.push_back({.file = name,
                             .name = piece.name,
                             .dtype = dtype_name(piece.tensor.scalar_type()),
                             .global_shape = piece.global_shape,
                             .offset = piece.offset,
                             .local_shape = piece.tensor.sizes().vec()});
  }
  return entry;
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  // What a rank of another node wrote must be here too.
  for (const auto& file : manifest.files) {
    std::error_code error;
    if (fs::file_size(folder / file.name, error) == file.size && !error) continue;
    fail_at(
        folder / file.name,
        "was written, but rank 0 does not see it. Fix: save to a directory on a file system that "
        "all ranks see");
  }
  const std::string text = to_text(manifest);
  AtomicFile file(folder / kManifestFile);
  file.write(text.data(), text.size());
  file.commit();
}

Manifest read_any_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  size_of(path);
  std::string text;
  read(path, [&](const char* data, size_t size) { text.append(data, size); });
  return manifest_from_text(text, path);
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  Manifest manifest = read_any_manifest(folder);
  if (checkpoint_name(manifest.step) != folder.filename()) {
    fail_at(path, fmt::format("is the manifest of another checkpoint, {}",
                              checkpoint_name(manifest.step)));
  }
  return manifest;
}

void check_file(const fs::path& folder, const FileEntry& file) {
  const fs::path path = folder / file.name;
  const uint64_t size = size_of(path, parts_in(file));
  if (size != file.size) {
    fail_at(path, fmt::format("has {} bytes, but {} were saved: it {}{}", size, file.size,
                              size < file.size ? "is truncated" : "has extra bytes at the end",
                              parts_in(file)));
  }
  Sha256 hash;
  read(path, [&](const char* data, size_t piece) { hash.update(data, piece); });
  if (hash.hex() != file.sha256) {
    fail_at(path,
            "is damaged or belongs to another checkpoint: its SHA-256 differs from the saved one" +
                parts_in(file));
  }
}

Manifest check_all(const fs::path& folder) {
  Manifest manifest = read_manifest(folder);
  for (const auto& file : manifest.files) check_file(folder, file);
  return manifest;
}

StateDict read_tensors(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  for (const auto& tensor : entry_of(folder, manifest, name).tensors) {
    if (tensor.local_shape == tensor.global_shape) continue;
    fail_at(folder / name,
            fmt::format("holds only a part of '{}', but the whole tensor is needed", tensor.name));
  }
  return load_file(folder / name);
}

}  // namespace distributed_utils::detail
