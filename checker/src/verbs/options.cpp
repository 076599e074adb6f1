#include "verbs/options.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker {

SplitArguments split_at_dashes(const Arguments& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  SplitArguments split{{arguments.begin(), dashes}, {}};
  if (dashes != arguments.end()) split.passed_on.assign(dashes + 1, arguments.end());
  return split;
}

std::optional<cxxopts::ParseResult> parse(cxxopts::Options options, const std::string& usage,
                                          const std::string& remark, const Arguments& arguments) {
  options.custom_help(usage).positional_help("").set_width(terminal::width());
  options.add_options()("h,help", "Print this help");
  const std::string name = options.program();
  std::vector<const char*> argv{name.c_str()};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  try {
    auto result = options.parse(static_cast<int>(argv.size()), argv.data());
    if (result.count("help")) {
      terminal::say(std::string(trim(options.help({""}))));
      if (!remark.empty()) {
        terminal::say("");
        for (const auto& line : split_lines(remark)) terminal::say(line);
      }
      return std::nullopt;
    }
    if (!result.unmatched().empty()) {
      throw UsageError("\"" + result.unmatched().front() + "\" is an extra argument.");
    }
    return result;
  } catch (const cxxopts::exceptions::exception& error) {
    std::string what = error.what();
    for (const auto* quote : {"\u2018", "\u2019"}) {
      what = replaced(std::move(what), quote, "\"");
    }
    throw UsageError(what + ".");
  }
}

}  // namespace checker
