#pragma once
/// The hashes of a data set's files, in the form of sha256sum, beside them.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace checker::data {

/// The name of the file in a set's folder.
constexpr const char* kManifest = "manifest.sha256";

/// From paths in the set's folder to their SHA-256.
using Manifest = std::map<std::string, std::string>;

/// None in a file that is not there. Throws Error, with the line, for what is not a manifest.
Manifest read_manifest(const std::filesystem::path& file);
void write_manifest(const std::filesystem::path& file, const Manifest& manifest);

/// The hashes of files of a folder, by the program sha256sum. `tick` is told how many are done.
/// Files that cannot be read have none. Throws Error if the program fails otherwise.
Manifest hash_files(const std::filesystem::path& folder, const std::vector<std::string>& paths,
                    const std::function<void(size_t done)>& tick = {});

/// One file's. Throws Error if it cannot be read.
std::string hash_file(const std::filesystem::path& file);

/// All regular files below a folder, as paths in it, sorted.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// What is not as it was.
struct Damage {
  std::vector<std::string> missing, changed;
};

Damage compare(const Manifest& manifest, const std::filesystem::path& folder,
               const std::function<void(size_t done)>& tick = {});

}  // namespace checker::data
