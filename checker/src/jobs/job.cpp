#include "jobs/job.hpp"

namespace checker {

std::string StartSeen::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace checker
