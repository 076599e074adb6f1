#include "process/spawn.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "process/child.hpp"
#include "process/fork_server.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(std::string("Cannot make a pipe: ") + std::strerror(errno) + ".");
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Our environment, if it is wanted, with the command's variables over it.
std::vector<std::string> environment_of(const Command& command) {
  const auto& over = command.environment;
  if (command.only_environment) return over;
  std::vector<std::string> merged;
  const auto overridden = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    for (const auto& other : over) {
      if (other.starts_with(name)) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry; ++entry) {
    if (!overridden(*entry)) merged.emplace_back(*entry);
  }
  merged.insert(merged.end(), over.begin(), over.end());
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (auto& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

// Everything that happens between fork and exec; allocates nothing. Returns only on failure.
void exec_child(const ChildSettings& settings, int socket, char* const* arguments,
                char* const* environment) {
  if (!settle_child(settings)) return;
  if (socket >= 0 && ::fcntl(socket, F_SETFD, 0) != 0) return;  // else exec would close it
  ::execvpe(arguments[0], arguments, environment);
}

// Throws Error naming the program if it cannot be started.
pid_t fork_and_become(const Command& command, int output, int error) {
  auto arguments = command.arguments;
  auto environment = environment_of(command);
  const auto argv = pointers(arguments), envp = pointers(environment);
  const std::string directory = command.directory.string();
  const ChildSettings settings{.parent = ::getpid(),
                               .directory = directory.c_str(),
                               .output = output,
                               .error = error,
                               .largest_file = command.largest_file};
  Pipe failure = make_pipe();  // closed by a successful exec, else tells why not
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(std::string("Cannot start a process: ") + std::strerror(errno) + ".");
  if (pid == 0) {
    exec_child(settings, command.socket, argv.data(), envp.data());
    const int reason = errno;
    [[maybe_unused]] const auto written = ::write(failure.write.get(), &reason, sizeof reason);
    ::_exit(127);
  }
  failure.write.close();
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.read.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof reason) {
    ::waitpid(pid, nullptr, 0);
    throw Error("Cannot start " + command.arguments.front() + ": " + std::strerror(reason) + ".");
  }
  return pid;
}

}  // namespace

Process spawn(const Command& command, Wiring wiring) {
  Pipe output = wiring.pipe_output ? make_pipe() : Pipe{};
  Pipe error = wiring.pipe_error ? make_pipe() : Pipe{};
  const pid_t pid = command.server
                        ? command.server->start(command, output.write.get(), error.write.get())
                        : fork_and_become(command, output.write.get(), error.write.get());
  ::setpgid(pid, pid);  // both do it, so that it is done whoever comes first
  for (const auto* pipe : {&output, &error}) {
    if (pipe->read.is_open()) ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  }
  return {pid, std::move(output.read), std::move(error.read)};
}

std::string Exit::describe() const {
  if (signal == 0) return "exit status " + std::to_string(code);
  return "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace checker
