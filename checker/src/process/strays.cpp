#include "process/strays.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "process/family.hpp"

namespace checker {

StrayCatcher::StrayCatcher() : children_before_(children_of(::getpid())) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

StrayCatcher::~StrayCatcher() { ::prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_); }

void StrayCatcher::collect(const std::set<pid_t>& others) const {
  for (const pid_t pid : children_of(::getpid())) {
    if (!children_before_.contains(pid) && !others.contains(pid)) ::waitpid(pid, nullptr, WNOHANG);
  }
}

void StrayCatcher::end() const {
  // The children of a killed stray become ours in turn, hence the rounds. They are collected in
  // whatever order they end in: the first process of a PID namespace ends after all others in it,
  // which may be children of ours as well. Whoever forks faster than this, or hangs in the kernel
  // for so long, is not a student's accident.
  constexpr auto patience = std::chrono::seconds(20);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    bool any = false, ended = false;
    for (const pid_t pid : children_of(::getpid())) {
      if (children_before_.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      ended = ::waitpid(pid, nullptr, WNOHANG) == pid || ended;
    }
    if (!any) return;
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace checker
