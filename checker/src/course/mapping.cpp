#include "course/mapping.hpp"

#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

std::string place_of(const fs::path& file, const YAML::Mark& mark) {
  return file.string() + (mark.is_null() ? "" : ":" + std::to_string(mark.line + 1));
}

void fail(const fs::path& file, const YAML::Mark& mark, const std::string& what) {
  throw Error(place_of(file, mark) + ": " + what);
}

YAML::Node read_yaml(const fs::path& file) {
  const std::string text = read_file(file);
  try {
    return YAML::Load(text);
  } catch (const YAML::ParserException& error) {
    fail(file, error.mark, error.msg);
  }
}

std::regex read_regex(const std::filesystem::path& file, const YAML::Node& node) {
  if (!node.IsScalar()) fail(file, node.Mark(), "a regular expression is expected here.");
  try {
    return std::regex(node.Scalar());
  } catch (const std::regex_error& error) {
    fail(file, node.Mark(), std::string("no regular expression: ") + error.what());
  }
}

}  // namespace checker
