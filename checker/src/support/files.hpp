#pragma once
/// Files read and written whole.
#include <filesystem>
#include <string>
#include <string_view>

namespace checker {

/// Throws Error naming the file and why it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes beside the file and renames, so that nobody ever sees half of it. Makes its folder.
/// Throws Error naming the file and why it cannot be written.
void write_file(const std::filesystem::path& file, std::string_view text);

/// Adds to the end of a file, in one piece, beside other processes that do. Makes it and its
/// folder. Throws Error naming the file and why it cannot be written.
void append_to_file(const std::filesystem::path& file, std::string_view text);

/// Changes an existing file in place, as /proc and /sys want it. False if that is refused.
bool write_in_place(const std::filesystem::path& file, std::string_view text);

/// Whether the path is the folder or leads into it, as far as names tell.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

/// A new private folder under TMPDIR, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace checker
