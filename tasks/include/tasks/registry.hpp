#pragma once
/// How a program gets its tasks: one explicit table, made by CMake (see worldsize_task_table) from
/// a list of names. A trainer calls parse_options and make_task of options.hpp and task.hpp; the
/// table turns these into the functions here. A task is a module, which is loaded when it is asked
/// for: a trainer links none, so more tasks do not make it slower to build.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/config.hpp"
#include "tasks/options.hpp"
#include "tasks/task.hpp"

namespace tasks {

/// A YAML file that is compiled into the program, so that it is found from any folder.
struct BuiltInConfig {
  std::string_view name;
  std::string_view yaml;
};

/// What a task brings. Every task X defines `tasks::Entry tasks::X::entry()`.
struct Entry {
  std::string_view name;                    ///< what --task calls it
  std::string_view summary;                 ///< one line for --help
  std::vector<BuiltInConfig> configs;       ///< at least one; the first is the default of --config
  std::vector<std::string_view> keys;       ///< what its configurations may say beside the options
  std::vector<std::string_view> fast = {};  ///< the parts that --fast may name
  std::shared_ptr<Task> (*make)(const Options& options, const Config& config) = nullptr;
  /// As make_secret of secret.hpp; null for a task that cannot be judged.
  std::vector<std::string> (*secret)(uint64_t seed, const std::filesystem::path& folder) = nullptr;
};

/// A task in the table. entry throws Error where the task cannot be had.
struct Row {
  std::string_view name;
  std::function<Entry()> entry;
};

/// What lies in the module tasks/<name>.so beside this library; it stays loaded. Throws Error if
/// the module is missing, or if a library that it needs is.
Entry load_task(const std::string& name);

/// The function of that name in the module tasks/<module>.so: a part of a task that alone needs a
/// library of others. What it and that library call is looked for in themselves first. It stays
/// loaded. Throws Error as load_task does.
void* load_function(const std::string& module, const char* function);

/// As parse_options and make_task without a table.
Options parse_options(std::span<const Row> table, int argc, const char* const* argv,
                      const Abilities& abilities = {});
std::shared_ptr<Task> make_task(std::span<const Row> table, const Options& options);
std::vector<std::string> make_secret(std::span<const Row> table, std::string_view task,
                                     uint64_t seed, const std::filesystem::path& folder);

/// The text of --help; defaults are those of the configuration that `config` names.
std::string help_text(std::span<const Row> table, const Entry& task, const std::string& config);

}  // namespace tasks
