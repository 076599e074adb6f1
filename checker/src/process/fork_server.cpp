#include "process/fork_server.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "process/served.hpp"
#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

std::string texts_of(const Command& command) {
  std::string text = command.directory.string() + '\0';
  for (const auto* some : {&command.arguments, &command.environment}) {
    for (const auto& one : *some) text += one + '\0';
  }
  return text;
}

bool send_request(int socket, ServedHead head, std::string text, int output, int error) {
  std::array<iovec, 2> parts{{{&head, sizeof head}, {text.data(), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  auto* descriptors = CMSG_FIRSTHDR(&message);
  descriptors->cmsg_level = SOL_SOCKET;
  descriptors->cmsg_type = SCM_RIGHTS;
  descriptors->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> both{output >= 0 ? output : STDOUT_FILENO,
                                error >= 0 ? error : STDERR_FILENO};
  std::memcpy(CMSG_DATA(descriptors), both.data(), sizeof both);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace

ForkServer::ForkServer(const fs::path& program, const std::vector<std::string>& environment)
    : program_(program.string()) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(std::string("Cannot make a socket: ") + std::strerror(errno) + ".");
  }
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  Command command;
  command.arguments = {program_, kServeArgument, std::to_string(theirs.get())};
  command.environment = environment;
  command.socket = theirs.get();
  process_ = spawn(command, {.pipe_output = false, .pipe_error = false});
}

ForkServer::~ForkServer() {
  socket_.close();
  ::kill(process_.pid, SIGKILL);  // It has nothing to save.
  ::waitpid(process_.pid, nullptr, 0);
}

pid_t ForkServer::start(const Command& command, int output, int error) const {
  ServedAnswer answer;
  const ServedHead head{.parent = ::getpid(),
                        .arguments = static_cast<uint32_t>(command.arguments.size()),
                        .largest_file = command.largest_file};
  auto text = texts_of(command);
  if (text.size() > kLargestRequest) {
    throw Error("Cannot start " + program_ + ": its arguments are too long.");
  }
  ssize_t got = -1;
  if (send_request(socket_.get(), head, std::move(text), output, error)) {
    do {
      got = ::recv(socket_.get(), &answer, sizeof answer, 0);
    } while (got < 0 && errno == EINTR);
  }
  if (got != sizeof answer) throw Error("Cannot start " + program_ + ": its fork server is gone.");
  if (answer.pid < 0) {
    throw Error("Cannot start " + program_ + ": " + std::strerror(answer.error) + ".");
  }
  return answer.pid;
}

void ForkServers::add(const fs::path& program) {
  if (!find(program)) known_.push_back({program, nullptr});
}

const ForkServer* ForkServers::of(const fs::path& program) {
  auto* known = find(program);
  if (!known) return nullptr;
  if (!known->server) known->server = std::make_unique<ForkServer>(known->program, environment_);
  return known->server.get();
}

ForkServers::Known* ForkServers::find(const fs::path& program) {
  const auto found = std::ranges::find_if(known_, [&](const Known& known) {
    std::error_code ignored;
    return known.program == program || fs::equivalent(known.program, program, ignored);
  });
  return found == known_.end() ? nullptr : &*found;
}

}  // namespace checker
