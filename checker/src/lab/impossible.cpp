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
  return std::ranges::any_of(split(lab_search_path(), ':'), [&](const std::string& folder) {
    return ::access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0;
  });
}

// What this does in a process of its own: 0, or errno.
int try_out(int (*action)()) {
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(action() == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WEXITSTATUS(status);
}

int make_namespaces() { return ::unshare(CLONE_NEWPID | lab_namespaces); }

int make_namespaces_and_separate_mounts() {
  return make_namespaces() == 0 ? separate_mounts() : -1;
}

std::string sentence(const std::string& why, const std::string& fix) {
  return why + ", so job scripts cannot run under Slurm here. Fix: " + fix;
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
  if (!is_root()) return sentence("A lab needs root", "use sudo.");
  // In a container root often may not do what root may.
  if (const int reason = try_out(make_namespaces); reason != 0) {
    return sentence(std::string("Cannot make namespaces (") + std::strerror(reason) + ")",
                    "use your own machine, or a container with --privileged.");
  }
  if (try_out(make_namespaces_and_separate_mounts) != 0) {
    return sentence("/ is not a mount point, as in a chroot",
                    "mount --bind ROOT ROOT, then chroot.");
  }
  return std::nullopt;
}

}  // namespace checker
