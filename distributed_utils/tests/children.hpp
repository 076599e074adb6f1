#pragma once
/// Forked children, to be traced or killed.
#include <sys/types.h>

#include <functional>

namespace children {

/// Does `body` in a child, which then exits with 0; with 1 if it throws. Torch's threads do not
/// live on in it, so it computes with one. A parent that has run backward() has spoiled autograd
/// for it.
pid_t fork_child(const std::function<void()>& body);

/// As fork_child; the child stops at each system call, before and after, and at first before
/// `body`. It dies with its parent. Returns its first wait status: see not_allowed.
struct Traced {
  pid_t pid;
  int status;
};
Traced fork_traced(const std::function<void()>& body);

/// Goes on to the next stop; false if there is none, because the child has ended.
bool next_stop(Traced& child);

/// The child could not be traced.
bool not_allowed(const Traced& child);
inline constexpr const char* kNeedsTracing = "needs leave to trace a child";

/// The wait status; a child that outlives all patience is killed, and the test fails.
int wait_for(pid_t child);

}  // namespace children
