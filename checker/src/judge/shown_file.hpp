#pragma once
/// A program may have several files, all in one folder: the student's, or a hand-in's.
#include <filesystem>
#include <optional>
#include <string>

namespace checker {

/// How to name a file that lies beside `source`, which is shown as `shown`; nothing for a file that
/// lies elsewhere.
inline std::optional<std::string> shown_beside(const std::filesystem::path& file,
                                               const std::filesystem::path& source,
                                               const std::filesystem::path& shown) {
  const auto normal = file.lexically_normal();
  if (normal.parent_path() != source.lexically_normal().parent_path()) return std::nullopt;
  return (shown.parent_path() / normal.filename()).string();
}

}  // namespace checker
