#include "tasks/config.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "nearest.hpp"
#include "option_rows.hpp"
#include "tasks/options.hpp"
#include "tasks/registry.hpp"

namespace tasks {
namespace {

// Longer chains of `base:` than this are circles.
constexpr int most_bases = 8;

std::string at(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file : fmt::format("{}:{}", file, mark.line + 1);
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) {
    throw Error(fmt::format("{}: no such configuration file", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: cannot be opened for reading", path.string()));
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_key(const std::string& key, const std::string& where, const Entry& task) {
  std::vector<std::string> keys{"base"};
  for (const auto& row : option_rows()) keys.push_back(row.key());
  keys.insert(keys.end(), task.keys.begin(), task.keys.end());
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  throw Error(fmt::format("{}: {}", where, unknown("key", key, views)));
}

YAML::Node parse_yaml(const std::string& yaml, const std::string& file) {
  try {
    return YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    throw Error(fmt::format("{}: cannot be read as YAML: {}", at(file, error.mark), error.msg));
  }
}

}  // namespace

Config Config::load(const std::string& name_or_path, const Entry& task) {
  Config config;
  config.name_ = name_or_path;
  config.read(name_or_path, task, {}, 0);
  return config;
}

void Config::read(const std::string& name_or_path, const Entry& task,
                  const std::filesystem::path& beside, int depth) {
  if (depth > most_bases) throw Error(fmt::format("{}: 'base' leads back to itself", name_));
  for (const auto& [name, yaml] : task.configs) {
    if (name == name_or_path) {
      return merge(std::string(yaml), name_or_path + ".yaml", task, {}, depth);
    }
  }
  if (!is_path(name_or_path)) {
    std::vector<std::string_view> names;
    for (const auto& config : task.configs) names.push_back(config.name);
    throw Error(unknown("configuration", name_or_path, names) +
                " A file of your own is named by its path, such as ./mine.yaml.");
  }
  const auto path = beside / name_or_path;
  merge(read_file(path), path.string(), task, path.parent_path(), depth);
}

void Config::merge(const std::string& yaml, const std::string& file, const Entry& task,
                   const std::filesystem::path& folder, int depth) {
  const YAML::Node root = parse_yaml(yaml, file);
  if (!root.IsMap()) throw Error(fmt::format("{}: has no lines of the form 'key: value'", file));
  std::map<std::string, Value, std::less<>> own;
  for (const auto& item : root) {
    const std::string line = at(file, item.first.Mark());
    if (!item.first.IsScalar()) throw Error(fmt::format("{}: a key must be one word", line));
    const std::string& key = item.first.Scalar();
    check_key(key, line, task);
    if (!item.second.IsScalar()) {
      throw Error(fmt::format("{}: '{}' must have one value", line, key));
    }
    if (!own.emplace(key, Value{item.second.Scalar(), line + ": " + key}).second) {
      throw Error(fmt::format("{}: '{}' appears twice", line, key));
    }
  }
  if (const auto base = own.extract("base")) read(base.mapped().text, task, folder, depth + 1);
  for (auto& [key, value] : own) values_[key] = value;
}

const Value* Config::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const Value& Config::need(std::string_view key) const {
  if (const auto* value = find(key)) return *value;
  throw Error(fmt::format(
      "{}: '{}' is missing; add it, or start from a complete one with 'base: <its name>'", name_,
      key));
}

int64_t Config::integer(std::string_view key, int64_t least, int64_t most) const {
  return parse_integer(need(key), least, most);
}

double Config::real(std::string_view key, double least, double most) const {
  return parse_real(need(key), least, most);
}

}  // namespace tasks
