// What the file shim (file_shim.cpp) tells of this process's files.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "instrumentation/memory.hpp"
#include "instrumentation/recording.hpp"

namespace instrumentation {
namespace {

namespace fs = std::filesystem;

fs::path absolute(const char* path) {
  std::error_code ignored;
  return fs::absolute(path, ignored).lexically_normal();
}

// The folder whose files are told of; empty: none. A process that is forked into ranks knows it
// only after it was forked.
const fs::path& watched() {
  static fs::path folder;
  if (folder.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): a program that changes it changes what it is told of
    if (const char* name = std::getenv("WORLDSIZE_FILES"); name && *name) folder = absolute(name);
  }
  return folder;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto inside = path.lexically_relative(folder);
  return !inside.empty() && *inside.begin() != ".." && *inside.begin() != ".";
}

void append_text(std::vector<std::byte>& payload, const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  payload.insert(payload.end(), bytes.begin(), bytes.end());
}

// What a file is written from: where tensors are counted.
void tell_memory() {
  const auto counted = memory::look();
  if (counted.live > 0) memory::record(Moment::file, counted);
}

void tell(FileAction action, const char* path, const char* new_path) {
  const auto& folder = watched();
  if (folder.empty()) return;
  const auto from = absolute(path);
  const auto to = new_path ? absolute(new_path) : fs::path();
  // The log lies elsewhere: what it does to its own file comes here too, and ends here.
  if (!lies_in(from, folder) && (to.empty() || !lies_in(to, folder))) return;
  tell_memory();
  const FileRecord record{action, static_cast<uint32_t>(from.string().size())};
  std::vector<std::byte> payload(sizeof record);
  std::memcpy(payload.data(), &record, sizeof record);
  append_text(payload, from.string());
  append_text(payload, to.string());
  recording::record(Kind::file, payload);
}

}  // namespace
}  // namespace instrumentation

/// Called by the file shim before a file changes. action: a FileAction. new_path: of a file that
/// moves, else null.
extern "C" [[gnu::visibility("default")]] void instrumentation_file_changes(uint32_t action,
                                                                            const char* path,
                                                                            const char* new_path) {
  try {
    instrumentation::tell(static_cast<instrumentation::FileAction>(action), path, new_path);
  } catch (
      ...) {  // NOLINT(bugprone-empty-catch): C callers; a file that nobody reports is not an error
  }
}
