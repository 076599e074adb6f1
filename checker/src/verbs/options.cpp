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

namespace {

// "world" for "worlds": the options' long names, those without a help line as well.
std::string option_meant(const cxxopts::Options& options, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& group : options.groups()) {
    for (const auto& option : options.group_help(group).options) {
      known.insert(known.end(), option.l.begin(), option.l.end());
    }
  }
  return did_you_mean(name, known);
}

}  // namespace

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
    const auto begin = what.find('"'), end = what.rfind('"');
    if (what.ends_with("does not exist") && begin < end) {
      what += option_meant(options, what.substr(begin + 1, end - begin - 1));
    }
    throw UsageError(what + (what.ends_with("?") ? "" : "."));
  }
}

}  // namespace checker
