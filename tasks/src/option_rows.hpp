#pragma once
/// The one table of options: what the command line, configuration files and the help know.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/config.hpp"
#include "tasks/options.hpp"

namespace tasks {

struct OptionRow {
  std::string_view name;      ///< as on the command line: "batch-size"
  std::string_view argument;  ///< its placeholder in the help; empty: a flag; "[=...]": may be
                              ///< left out, which means "all"
  std::string_view fallback;  ///< what the help shows where the configuration says nothing
  std::string_view help;
  void (*set)(Options& options, const Value& value);

  /// The name in a configuration file: "batch_size".
  std::string key() const;
};

/// Every option that a configuration file may set too.
std::span<const OptionRow> option_rows();

}  // namespace tasks
