#pragma once
/// What a new process does first, whoever forked it. All of it is in this header, because programs
/// that serve (see served.hpp) are linked to nothing of the checker.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace checker {

struct ChildSettings {
  pid_t parent = -1;           ///< the process gets SIGKILL when this one dies
  const char* directory = "";  ///< where it runs; empty: where it is
  int output = -1;             ///< becomes its standard output; -1: leave it
  int error = -1;              ///< becomes its standard error; -1: leave it
  uint64_t largest_file = 0;   ///< bytes that a file of its may grow to; 0: no limit
};

/// Makes the calling process the leader of a process group, with no standard input and all signals
/// as usual. Allocates nothing. False: it failed, and errno says why.
inline bool settle_child(const ChildSettings& settings) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != settings.parent) ::_exit(127);  // it died before prctl could say so
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Whoever started us may have had some ignored, and that would be inherited.
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) return false;
  if (nothing != STDIN_FILENO) ::close(nothing);
  if (settings.output >= 0 && ::dup2(settings.output, STDOUT_FILENO) < 0) return false;
  if (settings.error >= 0 && ::dup2(settings.error, STDERR_FILENO) < 0) return false;
  if (settings.largest_file > 0) {
    const rlimit limit{settings.largest_file, settings.largest_file};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  return *settings.directory == 0 || ::chdir(settings.directory) == 0;
}

}  // namespace checker
