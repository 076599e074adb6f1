#pragma once
/// Configuration files: flat YAML, one `key: value` a line, checked as strictly as the command
/// line.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tasks {

struct Entry;

/// A value as it was written, and where: "--epochs", "laptop.yaml:3: epochs".
struct Value {
  std::string text;
  std::string where;
};

/// The value as a number in [least, most]. Throws Error, naming where, for anything else, trailing
/// characters included.
int64_t parse_integer(const Value& value, int64_t least, int64_t most);
double parse_real(const Value& value, double least, double most);
bool parse_boolean(const Value& value);

class Config {
 public:
  /// Reads a configuration of the task: a built-in one by its name, else a file by its path. A file
  /// may start from another one with `base: <name or path beside this file>` and override its keys.
  /// Throws Error for a file that is missing or no flat YAML and for an unknown or repeated key.
  static Config load(const std::string& name_or_path, const Entry& task);

  /// The value of a key; null if the configuration does not have it.
  const Value* find(std::string_view key) const;

  /// The number under a key, in [least, most]. Throws Error if it is missing or anything else.
  int64_t integer(std::string_view key, int64_t least, int64_t most) const;
  double real(std::string_view key, double least, double most) const;

 private:
  void read(const std::string& name_or_path, const Entry& task, const std::filesystem::path& beside,
            int depth);
  void merge(const std::string& yaml, const std::string& file, const Entry& task,
             const std::filesystem::path& folder, int depth);
  const Value& need(std::string_view key) const;

  std::string name_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace tasks
