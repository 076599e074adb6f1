#include "site/site.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

struct Key {
  std::string_view name;
  std::string_view variable;  ///< sbatch's; empty: the job scripts read the key themselves
};

constexpr std::array<Key, 6> keys{{{"account", "SBATCH_ACCOUNT"},
                                   {"partition", "SBATCH_PARTITION"},
                                   {"qos", "SBATCH_QOS"},
                                   {"reservation", "SBATCH_RESERVATION"},
                                   {"modules", ""},
                                   {"interface", ""}}};

// Why a key is not allowed, for keys that somebody may well try.
std::string why_not(const std::string& key) {
  static constexpr std::array<std::string_view, 9> resources{
      "gres",          "gpus", "nodes",  "ntasks", "ntasks-per-node",
      "cpus-per-task", "time", "output", "mem"};
  if (std::ranges::find(resources, key) == resources.end()) {
    std::vector<std::string> names;
    for (const auto& known : keys) names.emplace_back(known.name);
    const auto guess = did_you_mean(key, names);
    return "unknown key " + key + (guess.empty() ? "." : guess) +
           " Allowed keys: " + join(names, ", ") + ".";
  }
  return key +
         " cannot be set here. Each job script sets it, and an SBATCH_* variable would silently "
         "override that.";
}

}  // namespace

Site parse_site(std::string_view text, const std::string& file) {
  Site site;
  int number = 0;
  for (const auto& whole : split_lines(text)) {
    ++number;
    const auto fail = [&](const std::string& what) -> void {
      throw Error(file + ":" + std::to_string(number) + ": " + what);
    };
    const auto line = trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const auto equals = line.find('=');
    if (equals == line.npos) fail("\"" + std::string(line) + "\" is not key = value.");
    const std::string key(trim(line.substr(0, equals)));
    const std::string value(trim(line.substr(equals + 1)));
    if (std::ranges::find(keys, key, &Key::name) == keys.end()) fail(why_not(key));
    if (!site.emplace(key, value).second) fail(key + " appears twice.");
  }
  return site;
}

std::vector<std::string> site_variables(const Site& site) {
  std::vector<std::string> variables;
  for (const auto& key : keys) {
    const auto found = site.find(std::string(key.name));
    if (key.variable.empty() || found == site.end() || found->second.empty()) continue;
    variables.push_back(std::string(key.variable) + "=" + found->second);
  }
  return variables;
}

std::string site_exports(const Site& site) {
  std::string lines;
  for (const auto& variable : site_variables(site)) {
    const auto value = variable.find('=') + 1;
    lines += "export " + variable.substr(0, value) + shell_quote(variable.substr(value)) + "\n";
  }
  return lines;
}

}  // namespace checker
