#include "jobs/torchrun_call.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

namespace checker {

namespace {

constexpr std::array<std::string_view, 5> kFlags{"standalone", "module", "no-python", "run-path",
                                                 "virtual-local-rank"};
constexpr std::array<std::string_view, 24> kOptions{"nnodes",
                                                    "nproc-per-node",
                                                    "rdzv-backend",
                                                    "rdzv-endpoint",
                                                    "rdzv-id",
                                                    "rdzv-conf",
                                                    "max-restarts",
                                                    "monitor-interval",
                                                    "start-method",
                                                    "event-log-handler",
                                                    "role",
                                                    "log-dir",
                                                    "redirects",
                                                    "tee",
                                                    "local-ranks-filter",
                                                    "duplicate-stdout-filters",
                                                    "duplicate-stderr-filters",
                                                    "node-rank",
                                                    "master-addr",
                                                    "master-port",
                                                    "local-addr",
                                                    "logs-specs",
                                                    "numa-binding",
                                                    "signals-to-handle"};

// The option that a word gives, without its value: "--rdzv_id=7" is "rdzv-id".
std::string name_in(std::string word) {
  word.resize(std::min(word.size(), word.find('=')));
  if (word == "-m") return "module";
  if (word == "-r") return "redirects";
  if (word == "-t") return "tee";
  std::ranges::replace(word, '_', '-');
  return word.starts_with("--") ? word.substr(2) : word;
}

bool is_in(const auto& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// "PET_RDZV_ID" is "rdzv-id".
std::optional<std::string> name_in_environment(std::string variable) {
  if (!variable.starts_with("PET_")) return std::nullopt;
  variable.erase(0, 4);
  std::ranges::transform(variable, variable.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return variable;
}

}  // namespace

std::string TorchrunCall::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

TorchrunCall parse_torchrun(std::span<const std::string> words,
                            const std::map<std::string, std::string>& environment) {
  TorchrunCall call;
  for (const auto& [variable, value] : environment) {
    const auto name = name_in_environment(variable);
    // A flag is switched on by 1 and off by 0.
    if (!name || (is_in(kFlags, *name) && value == "0")) continue;
    call.options[*name] = value;
  }
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with('-') && words[at] != "--"; ++at) {
    const auto name = name_in(words[at]);
    const auto equals = words[at].find('=');
    if (is_in(kFlags, name)) {
      call.options[name];
    } else if (!is_in(kOptions, name)) {
      call.unknown = words[at];
      return call;
    } else if (equals != std::string::npos) {
      call.options[name] = words[at].substr(equals + 1);
    } else {
      call.options[name] = at + 1 < words.size() ? words[++at] : "";
    }
  }
  if (at < words.size() && words[at] == "--") ++at;
  if (at >= words.size()) return call;
  call.has_program = true;
  call.program = words[at];
  call.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  return call;
}

}  // namespace checker
