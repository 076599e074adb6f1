#pragma once
/// What all verbs share in reading their command lines.
#include <cxxopts.hpp>
#include <optional>
#include <string>
#include <utility>

#include "verbs/verbs.hpp"

namespace checker {

/// What stands before a "--" and what after it.
struct SplitArguments {
  Arguments own;
  Arguments passed_on;
};

SplitArguments split_at_dashes(const Arguments& arguments);

/// Parses with --help: nothing is returned once the help was printed. `usage` is what follows the
/// verb; `remark` comes after the options. Throws UsageError.
std::optional<cxxopts::ParseResult> parse(cxxopts::Options options, const std::string& usage,
                                          const std::string& remark, const Arguments& arguments);

}  // namespace checker
