#include "children.hpp"

#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace children {
namespace {

constexpr int kNotAllowed = 77;
constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

pid_t fork_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    torch::set_num_threads(1);  // The parent's threads are not here.
    body();
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child %d: %s\n", getpid(), error.what());
    _exit(1);
  }
}

Traced fork_traced(const std::function<void()>& body) {
  Traced child = {.pid = fork_child([&] {
                    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotAllowed);
                    raise(SIGSTOP);
                    body();
                  }),
                  .status = 0};
  waitpid(child.pid, &child.status, 0);
  if (WIFSTOPPED(child.status)) {
    ptrace(PTRACE_SETOPTIONS, child.pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  }
  return child;
}

bool next_stop(Traced& child) {
  ptrace(PTRACE_SYSCALL, child.pid, nullptr, nullptr);
  waitpid(child.pid, &child.status, 0);
  return WIFSTOPPED(child.status);
}

bool not_allowed(const Traced& child) {
  return WIFEXITED(child.status) && WEXITSTATUS(child.status) == kNotAllowed;
}

int wait_for(pid_t child) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "a child did not end";
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace children
