#pragma once
/// YAML files of the course, read strictly.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace checker {

/// "file:line"; of a node that is not there the file alone.
std::string place_of(const std::filesystem::path& file, const YAML::Mark& mark);

/// Throws Error "file:line: what".
[[noreturn]] void fail(const std::filesystem::path& file, const YAML::Mark& mark,
                       const std::string& what);

/// Throws Error "file:line: what" for what is not a regular expression.
std::regex read_regex(const std::filesystem::path& file, const YAML::Node& node);

/// Throws Error "file:line: what" for text that is not YAML.
YAML::Node read_yaml(const std::filesystem::path& file);

/// A mapping that is read key by key, so that a key nobody asked for is an error.
class Mapping {
 public:
  Mapping(const std::filesystem::path& file, const YAML::Node& node, std::vector<std::string> known)
      : file_(file), node_(node), known_(std::move(known)) {
    if (!node.IsMap()) fail(file_, node.Mark(), "a mapping (key: value) is expected here.");
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      if (std::ranges::find(known_, key) == known_.end()) {
        fail(file_, entry.first.Mark(), "unknown key " + key + did_you_mean(key, known_));
      }
    }
  }

  YAML::Node node(const std::string& key) const {
    const auto value = node_[key];
    if (!value) fail(file_, node_.Mark(), "the key " + key + " is missing.");
    return value;
  }

  std::string text(const std::string& key) const {
    const auto value = node(key);
    const std::string text(value.IsScalar() ? trim(value.Scalar()) : "");
    if (text.empty()) fail(file_, value.Mark(), key + " must be a text.");
    return text;
  }

  std::string line(const std::string& key) const {
    auto text = this->text(key);
    if (text.find('\n') != text.npos) fail(file_, node(key).Mark(), key + " must be one line.");
    return text;
  }

  bool has(const std::string& key) const { return node_[key].IsDefined(); }

  template <typename T>
  std::vector<T> list(const std::string& key) const {
    try {
      return node(key).as<std::vector<T>>();
    } catch (const YAML::Exception&) {
      fail(file_, node(key).Mark(), key + " must be a list, in square brackets.");
    }
  }

 private:
  const std::filesystem::path& file_;
  YAML::Node node_;
  std::vector<std::string> known_;
};

}  // namespace checker
