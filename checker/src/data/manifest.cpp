#include "data/manifest.hpp"

#include <algorithm>
#include <cctype>

#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

constexpr size_t kDigits = 64;
constexpr size_t kAtOnce = 500;  // names on one command line

// "<hash>  <path>", where the second blank may be a star.
bool read_line(const std::string& line, Manifest& manifest) {
  if (line.size() < kDigits + 3 || line[kDigits] != ' ') return false;
  auto hash = line.substr(0, kDigits);
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  if (!std::ranges::all_of(hash, is_digit)) return false;
  std::ranges::transform(hash, hash.begin(), [](unsigned char c) { return std::tolower(c); });
  manifest[line.substr(kDigits + 2)] = hash;
  return true;
}

// What sha256sum says of files it cannot read goes nowhere: they lack a line.
void hash_some(const fs::path& folder, std::vector<std::string> paths, Manifest& manifest) {
  Command command;
  command.arguments = {"sha256sum", "--"};
  command.arguments.insert(command.arguments.end(), paths.begin(), paths.end());
  command.directory = folder;
  RankOptions options;
  options.on_line = [&](size_t, bool is_error, std::string_view line) {
    if (!is_error) read_line(std::string(line), manifest);
    return true;
  };
  const auto ended = run_ranks({&command, 1}, options);
  if (ended.interrupted_by != 0) throw Error("Interrupted. Run the same command again.");
  if (ended.ranks[0].exit.code > 1 || ended.ranks[0].exit.signal != 0) {
    throw Error("sha256sum in " + folder.string() + ": " + ended.ranks[0].exit.describe() +
                ". Fix: sudo apt-get install coreutils.");
  }
}

}  // namespace

Manifest read_manifest(const fs::path& file) {
  Manifest manifest;
  if (!fs::exists(file)) return manifest;
  size_t number = 0;
  for (const auto& line : split_lines(read_file(file))) {
    ++number;
    if (!line.empty() && !read_line(line, manifest)) {
      throw Error(file.string() + ":" + std::to_string(number) +
                  ": This is not a line of sha256sum. Fix: delete the line, or remove the file: "
                  "the next download writes it again.");
    }
  }
  return manifest;
}

void write_manifest(const fs::path& file, const Manifest& manifest) {
  std::string text;
  for (const auto& [path, hash] : manifest) text += hash + "  " + path + "\n";
  write_file(file, text);
}

Manifest hash_files(const fs::path& folder, const std::vector<std::string>& paths,
                    const std::function<void(size_t)>& tick) {
  Manifest manifest;
  for (size_t at = 0; at < paths.size(); at += kAtOnce) {
    if (tick) tick(at);
    const auto first = paths.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = std::min(kAtOnce, paths.size() - at);
    hash_some(folder, {first, first + static_cast<std::ptrdiff_t>(count)}, manifest);
  }
  return manifest;
}

std::string hash_file(const fs::path& file) {
  const auto name = file.filename().string();
  const auto hashes = hash_files(file.parent_path(), {name});
  if (hashes.empty()) throw Error(file.string() + ": Cannot read it. Fix: run this again.");
  return hashes.at(name);
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(folder).string());
  }
  std::ranges::sort(paths);
  return paths;
}

Damage compare(const Manifest& manifest, const fs::path& folder,
               const std::function<void(size_t)>& tick) {
  Damage damage;
  std::vector<std::string> there;
  for (const auto& [path, hash] : manifest) {
    (fs::is_regular_file(folder / path) ? there : damage.missing).push_back(path);
  }
  const auto now = hash_files(folder, there, tick);
  for (const auto& path : there) {
    const auto found = now.find(path);
    if (found == now.end() || found->second != manifest.at(path)) damage.changed.push_back(path);
  }
  return damage;
}

}  // namespace checker::data
