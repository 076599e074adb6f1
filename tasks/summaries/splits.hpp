#pragma once
/// The files of a split, in the forms that XSum comes in.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "json_lines.hpp"

namespace tasks::summaries {

class Split {
 public:
  /// Looks in the folder for <name>.jsonl or <name>.json; else for Arrow files, named as Hugging
  /// Face's datasets names them: <name>.arrow or <dataset>-<name>.arrow, both perhaps in parts
  /// (-00000-of-00002), or all that is in a folder <name>. Throws Error if there is none of them,
  /// or a part is missing.
  Split(const std::filesystem::path& folder, const std::string& name);

  /// As for_each_pair, over all files.
  void for_each(const std::function<void(const Pair& pair)>& take) const;

 private:
  std::vector<std::filesystem::path> files_;
};

}  // namespace tasks::summaries
