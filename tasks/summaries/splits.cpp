#include "splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "parts.hpp"
#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

namespace fs = std::filesystem;

// Files in parts, by their names before the part's number.
using Parts = std::map<std::string, std::set<fs::path>>;

// All Arrow files of the folder whose names begin, before a part's number, as `start` says.
Parts arrow_files(const fs::path& folder, const std::string& start) {
  const std::regex form("(" + start + R"()(-([0-9]{5})-of-([0-9]{5}))?\.arrow)");
  Parts parts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    std::smatch found;
    if (std::regex_match(name, found, form)) {
      parts[found[1].str() + (found[4].matched ? "-of-" + found[4].str() : "")].insert(entry);
    }
  }
  return parts;
}

std::vector<fs::path> all_parts(const Parts& found, const fs::path& folder) {
  if (found.size() > 1) {
    throw Error(fmt::format("--data: {} has both {} and {}. Fix: keep one of them.",
                            folder.string(), found.begin()->second.begin()->filename().string(),
                            found.rbegin()->second.begin()->filename().string()));
  }
  const auto& [name, files] = *found.begin();
  const auto of = name.rfind("-of-");
  if (of != std::string::npos && std::stoul(name.substr(of + 4)) != files.size()) {
    throw Error(fmt::format("--data: {} has {} of the {} parts of {}. Fix: copy the others too.",
                            folder.string(), files.size(), std::stoul(name.substr(of + 4)),
                            name.substr(0, of)));
  }
  return {files.begin(), files.end()};
}

std::vector<fs::path> find_files(const fs::path& folder, const std::string& name) {
  if (!fs::is_directory(folder)) {
    throw Error(fmt::format("--data: {} is not a folder", folder.string()));
  }
  for (const char* ending : {".jsonl", ".json"}) {
    if (auto file = folder / (name + ending); fs::exists(file)) return {file};
  }
  if (const auto found = arrow_files(folder, "(?:.*-)?" + name); !found.empty()) {
    return all_parts(found, folder);
  }
  if (fs::is_directory(folder / name)) {
    if (const auto found = arrow_files(folder / name, "(?!cache-).*?"); !found.empty()) {
      return all_parts(found, folder / name);
    }
  }
  throw Error(
      fmt::format("--data: {0} has no {1}.jsonl, nor {1}.arrow. Fix: name a folder that holds "
                  "train.jsonl, validation.jsonl and test.jsonl, one JSON object a line; or the "
                  "Arrow files of Hugging Face's datasets.",
                  folder.string(), name));
}

}  // namespace

Split::Split(const fs::path& folder, const std::string& name) : files_(find_files(folder, name)) {}

void Split::for_each(const std::function<void(const Pair& pair)>& take) const {
  for (const auto& file : files_) {
    if (file.extension() == ".arrow") {
      for_each_arrow_pair(file, take);
    } else {
      for_each_pair(file, take);
    }
  }
}

}  // namespace tasks::summaries
