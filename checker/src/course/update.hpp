#pragma once
/// Brings rendered files into a folder without ever losing what somebody wrote there.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

using RenderedFiles = std::map<std::filesystem::path, std::string>;

struct Update {
  std::vector<std::filesystem::path> written;  ///< new or changed
  std::vector<std::filesystem::path> removed;  ///< no longer part of the course
  /// A student's file, and where it was kept.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> kept;
};

/// Makes the folder's files equal to `files`. A file there that no rendering wrote (its fingerprint
/// is not the one noted in steps/.rendered) is a student's: it is kept beside the new one as
/// <name>.before-update, or <name>.2.before-update and so on. Throws Error if a file cannot be
/// written.
Update update_files(const RenderedFiles& files, const std::filesystem::path& folder);

/// What update_files would change, one line each: "steps/02_setup/train.cpp: differs". Writes
/// nothing.
std::vector<std::string> find_differences(const RenderedFiles& files,
                                          const std::filesystem::path& folder);

/// The free name beside a file under which its present content is to be kept before something:
/// "train.cpp.before-update", "train.cpp.2.before-update" and so on.
std::filesystem::path name_beside(const std::filesystem::path& file,
                                  std::string_view before = "update");
/// The last name that was given so and is there; nothing if none is.
std::optional<std::filesystem::path> last_beside(const std::filesystem::path& file,
                                                 std::string_view before);

}  // namespace checker
