#include "lab/impossible.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lab/isolation.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

struct Tool {
  std::string_view program;
  std::string_view package;  ///< Debian's
};

constexpr std::array<Tool, 7> tools{{{"slurmctld", "slurm-wlm"},
                                     {"slurmd", "slurm-wlm"},
                                     {"sbatch", "slurm-wlm"},
                                     {"munged", "munge"},
                                     {"ip", "iproute2"},
                                     {"nsenter", "util-linux"},
                                     {"setpriv", "util-linux"}}};

bool is_installed(std::string_view program) {
  const std::string folders = lab_search_path();
  for (size_t at = 0; at < folders.size();) {
    const auto end = std::min(folders.find(':', at), folders.size());
    const auto file = std::filesystem::path(folders.substr(at, end - at)) / program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

// In a container root often may not do what root may: 0, or errno.
int try_namespaces() {
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(::unshare(CLONE_NEWPID | lab_namespaces) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WEXITSTATUS(status);
}

std::string sentence(const std::string& why, const std::string& mend) {
  return why + ", so job scripts cannot be tried under Slurm here. Mend: " + mend;
}

}  // namespace

std::string lab_search_path() {
  const char* path = std::getenv("PATH");
  return std::string(path && *path ? path : "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin";
}

std::optional<std::string> lab_impossible() {
  std::vector<std::string> programs, packages;
  for (const auto& tool : tools) {
    if (is_installed(tool.program)) continue;
    programs.emplace_back(tool.program);
    const std::string package(tool.package);
    if (std::ranges::find(packages, package) == packages.end()) packages.push_back(package);
  }
  if (!programs.empty()) {
    return sentence(join(programs, ", ") + (programs.size() == 1 ? " is" : " are") + " missing",
                    "sudo apt-get install " + join(packages, " "));
  }
  if (::geteuid() != 0) return sentence("A lab needs root", "say it with sudo.");
  if (const int reason = try_namespaces(); reason != 0) {
    return sentence(std::string("Namespaces cannot be made (") + std::strerror(reason) + ")",
                    "a machine of your own, or a container with --privileged.");
  }
  return std::nullopt;
}

}  // namespace checker
