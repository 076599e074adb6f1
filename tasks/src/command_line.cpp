#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cxxopts.hpp>

#include "nearest.hpp"
#include "option_rows.hpp"
#include "tasks/registry.hpp"

namespace tasks {
namespace {

// The options with what the help shows as their defaults.
cxxopts::Options describe(const std::map<std::string_view, std::string>& defaults) {
  cxxopts::Options options("train", "Trains a task's model.");
  options.custom_help("[--task NAME] [--config NAME|FILE] [options]").set_width(96);
  const auto add = [&](std::string_view group, std::string_view name, std::string_view argument,
                       std::string_view help) {
    auto value = argument.empty() ? cxxopts::value<bool>() : cxxopts::value<std::string>();
    if (argument.starts_with("[=")) {  // what it takes may be left out, and stands behind a "="
      value = cxxopts::value<std::string>()->implicit_value("all");
      argument = argument.substr(2, argument.size() - 3);
    }
    std::string text(help);
    if (const auto given = defaults.find(name); given != defaults.end() && !given->second.empty()) {
      text += fmt::format(" (default: {})", given->second);
    }
    options.add_option(std::string(group), "", std::string(name), text, value,
                       std::string(argument));
  };
  add("What to train", "task", "NAME", "one of the tasks below");
  add("What to train", "config", "NAME|FILE", "one of the configurations below, or a YAML file");
  for (const auto& row : option_rows()) add("How to train it", row.name, row.argument, row.help);
  add("How to train it", "help", "", "print this");
  return options;
}

void refuse_unmatched(const std::vector<std::string>& unmatched) {
  if (unmatched.empty()) return;
  const std::string& first = unmatched.front();
  if (!first.starts_with('-')) throw Error(fmt::format("'{}' does not belong to an option", first));
  std::vector<std::string> names{"--task", "--config", "--help"};
  for (const auto& row : option_rows()) names.push_back(fmt::format("--{}", row.name));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto name = std::string_view(first).substr(0, first.find('='));
  throw Error(unknown("option", name, views) + " --help lists all.");
}

cxxopts::ParseResult parse(int argc, const char* const* argv) {
  auto options = describe({});
  options.allow_unrecognised_options();
  try {
    return options.parse(argc, argv);
  } catch (const std::exception& error) {  // its exceptions' names differ between versions
    throw Error(fmt::format("{}; --help lists all options", error.what()));
  }
}

// A task that is not to be had here takes nothing from the others.
std::string lines_about(const Row& row) try {
  const auto entry = row.entry();
  auto text = fmt::format("  {}: {}\n   ", entry.name, entry.summary);
  for (const auto& built_in : entry.configs) text += fmt::format(" {}", built_in.name);
  text += "\n";
  if (!entry.fast.empty()) text += fmt::format("    --fast: {}\n", fmt::join(entry.fast, ", "));
  return text;
} catch (const Error& error) {
  return fmt::format("  {}\n", error.what());
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  const auto parsed = parse(argc, argv);
  refuse_unmatched(parsed.unmatched());
  CommandLine given;
  for (const auto& option : parsed.arguments()) {
    const std::string where = "--" + option.key();
    if (option.value().starts_with("--")) {
      throw Error(fmt::format("{} needs an argument, not the option {}", where, option.value()));
    }
    if (option.key() == "task") {
      given.task = option.value();
    } else if (option.key() == "config") {
      given.config = option.value();
    } else if (option.key() == "help") {
      given.help = true;
    } else {
      given.values.insert_or_assign(option.key(), Value{option.value(), where});
    }
  }
  return given;
}

std::string help_text(std::span<const Row> table, const Entry& task, const std::string& config) {
  const auto loaded = Config::load(config, task);
  std::map<std::string_view, std::string> defaults{
      {"task", std::string(table.front().name)},
      {"config", std::string(task.configs.front().name)}};
  for (const auto& row : option_rows()) {
    const auto* value = loaded.find(row.key());
    defaults[row.name] = value ? value->text : std::string(row.fallback);
  }
  std::string text = describe(defaults).help({"What to train", "How to train it"});
  text += "\nTasks and their configurations:\n";
  for (const auto& row : table) text += lines_about(row);
  text += fmt::format(
      "\nThe command line overrides the configuration file, and the file overrides the defaults. "
      "The\ndefaults above are those of the configuration {}. Your own file may say 'base: {}' and "
      "change keys.\n",
      config, task.configs.front().name);
  return text;
}

}  // namespace tasks
