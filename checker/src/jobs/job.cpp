#include "jobs/job.hpp"

#include <algorithm>

namespace checker {

std::string StartSeen::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string StartSeen::option(const std::string& name) const {
  const auto same = [](std::string word) {
    std::ranges::replace(word, '_', '-');
    return word;
  };
  const std::string wanted = "--" + name;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto equals = arguments[i].find('=');
    if (same(arguments[i].substr(0, equals)) != wanted) continue;
    if (equals != std::string::npos) return arguments[i].substr(equals + 1);
    return i + 1 < arguments.size() ? arguments[i + 1] : "";
  }
  return "";
}

}  // namespace checker
