#pragma once
/// What stands on the command line, not yet understood.
#include <map>
#include <optional>
#include <string>

#include "tasks/config.hpp"

namespace tasks {

struct CommandLine {
  std::optional<std::string> task;
  std::optional<std::string> config;
  bool help = false;
  std::map<std::string, Value, std::less<>> values;  ///< by the options' names
};

/// Throws Error for an unknown option, a missing argument and anything that is not an option.
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace tasks
