#include "tasks/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "command_line.hpp"
#include "nearest.hpp"
#include "option_rows.hpp"
#include "tasks/registry.hpp"

namespace tasks {
namespace {

Entry find_task(std::span<const Row> table, std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return row.entry();
  }
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  throw Error(unknown("task", name, names));
}

// torchrun would take --monitor for its own --monitor-interval, even behind the program's name.
bool environment_asks_for_monitoring() {
  const char* value = std::getenv("WORLDSIZE_MONITOR");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != 0 && parse_boolean({value, "WORLDSIZE_MONITOR"});
}

std::vector<std::string_view> parts_of(const Entry& task) {
  auto parts = task.fast;
  parts.emplace_back("graph");
  return parts;
}

// The names become those of the task.
void resolve_fast(Fast& fast, const Entry& task, const std::string& where) {
  if (fast.all) {
    for (const auto& part : task.fast) fast.parts.emplace(part);
    fast.parts.emplace("graph");
  }
  for (const auto& part : fast.parts) {
    if (part == "graph" || std::ranges::find(task.fast, part) != task.fast.end()) continue;
    throw Error(fmt::format(
        "{}: '{}' is not a part of {}; use all, none, or some of {}, separated by commas", where,
        part, task.name, fmt::join(parts_of(task), ", ")));
  }
}

}  // namespace

Options parse_options(std::span<const Row> table, int argc, const char* const* argv,
                      const Abilities& abilities) {
  const CommandLine given = read_command_line(argc, argv);
  Options options;
  options.monitor = environment_asks_for_monitoring();
  options.task = given.task.value_or(std::string(table.front().name));
  const Entry task = find_task(table, options.task);
  options.config = given.config.value_or(std::string(task.configs.front().name));
  if (given.help) {
    fmt::print("{}", help_text(table, task, options.config));
    std::exit(0);
  }
  const auto config = Config::load(options.config, task);
  std::string fast_from;
  for (const auto& row : option_rows()) {
    const auto set = [&](const Value& value) {
      row.set(options, value);
      if (row.name == "fast") fast_from = value.where;
    };
    if (const auto* value = config.find(row.key())) set(*value);
    if (const auto value = given.values.find(row.name); value != given.values.end()) {
      set(value->second);
    }
  }
  for (const auto& [name, value] :
       {std::pair{"epochs", options.epochs}, std::pair{"batch-size", options.batch_size}}) {
    if (value == 0) throw Error(fmt::format("{} does not set --{}; give it", options.config, name));
  }
  if (!abilities.checkpoints && (options.checkpoint_every > 0 || options.resume)) {
    throw Error(
        "--checkpoint-every and --resume: this trainer makes no checkpoints; use one that does");
  }
  if (!abilities.starts && options.from) {
    throw Error("--from: this trainer starts from no saved model; take one that does");
  }
  if (options.products == Products::fp16 && !abilities.scales) {
    throw Error(
        "--precision: fp16 needs a scaled loss, and this trainer does not scale its loss; use "
        "bf16, or a trainer with a GradScaler");
  }
  resolve_fast(options.fast, task, fast_from);
  return options;
}

std::shared_ptr<Task> make_task(std::span<const Row> table, const Options& options) {
  const Entry task = find_task(table, options.task);
  return task.make(options, Config::load(options.config, task));
}

std::vector<std::string> make_secret(std::span<const Row> table, std::string_view task,
                                     uint64_t seed, const std::filesystem::path& folder) {
  const Entry entry = find_task(table, task);
  if (!entry.secret) throw Error(fmt::format("the task {} cannot be judged", task));
  return entry.secret(seed, folder);
}

}  // namespace tasks
