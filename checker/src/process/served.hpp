#pragma once
/// A program as a fork server: it loads once, and each of its runs is forked from it. Loading
/// LibTorch takes a third of a second, which is most of what a small run costs. The checker's side
/// is fork_server.hpp. All of this is in headers, because judged programs are linked to nothing of
/// the checker.
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "child.hpp"

namespace checker {

/// The first argument of a program that is to serve. The second is the socket of its requests.
constexpr const char* kServeArgument = "--fork-server";

/// Of a request. The texts follow, each with its final NUL: the directory, so many arguments, and
/// as "NAME=value" what is to change in the environment. Standard output and error come along.
struct ServedHead {
  pid_t parent = -1;
  uint32_t arguments = 0;
  uint64_t largest_file = 0;
};
constexpr size_t kLargestRequest = 64 << 10;

/// Of an answer.
struct ServedAnswer {
  pid_t pid = -1;
  int error = 0;  ///< errno, if there is no process
};

struct ServedRequest {
  ServedHead head;
  int output = -1, error = -1;
  std::vector<std::string> texts;
};

/// False: nobody asks any more.
inline bool receive_request(int socket, ServedRequest& request) {
  static std::array<char, kLargestRequest> text;
  iovec parts[] = {{&request.head, sizeof request.head}, {text.data(), text.size()}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* descriptors = CMSG_FIRSTHDR(&message);
  if (got < static_cast<ssize_t>(sizeof request.head) || !descriptors) return false;
  int both[2];
  std::memcpy(both, CMSG_DATA(descriptors), sizeof both);
  request.output = both[0];
  request.error = both[1];
  const char* end = text.data() + (got - static_cast<ssize_t>(sizeof request.head));
  for (const char* next = text.data(); next < end; next += request.texts.back().size() + 1) {
    request.texts.emplace_back(next);
  }
  return true;
}

/// Ends a run once the handlers are through that the program itself has registered. What was
/// registered before is the destructors of libraries: LibTorch's take a tenth of a second.
inline void leave_run(int status, void* /*nothing*/) {
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
  ::_exit(status);
}

/// What a forked run does. Returns the exit status of the program.
inline int run_request(ServedRequest& request, int (*program)(int, char**)) {
  const ChildSettings settings{request.head.parent, request.texts[0].c_str(), request.output,
                               request.error, request.head.largest_file};
  if (!settle_child(settings)) return 127;
  ::close(request.output);
  ::close(request.error);
  std::vector<char*> words;
  size_t next = 1;
  for (; next <= request.head.arguments; ++next) words.push_back(request.texts[next].data());
  for (; next < request.texts.size(); ++next) ::putenv(request.texts[next].data());
  words.push_back(nullptr);
  ::on_exit(leave_run, nullptr);
  return program(static_cast<int>(request.head.arguments), words.data());
}

/// main() of a program that can serve: runs it, or serves until nobody asks any more.
inline int run_or_serve(int count, char** words, int (*program)(int, char**)) {
  if (count != 3 || std::string_view(words[1]) != kServeArgument) return program(count, words);
  const int socket = std::atoi(words[2]);
  static ServedRequest request;  // The environment and the arguments of a run are in it.
  while (receive_request(socket, request)) {
    // A child of the checker, as if the checker had started it: it waits for it. There is one
    // thread, and no handler of pthread_atfork matters to it.
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
    if (pid == 0) {
      ::close(socket);
      return run_request(request, program);
    }
    ::close(request.output);
    ::close(request.error);
    const ServedAnswer answer{pid, pid < 0 ? errno : 0};
    if (::send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) return 1;
    request = {};
  }
  return 0;
}

}  // namespace checker
