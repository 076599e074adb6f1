#include "process/spawn.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

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
void become(pid_t parent, const Command& command, const char* directory, char* const* arguments,
            char* const* environment, int output, int error) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before prctl could say so
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Whoever started us may have had some ignored, and that would be inherited.
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) return;
  if (nothing != STDIN_FILENO) ::close(nothing);
  if (output >= 0 && ::dup2(output, STDOUT_FILENO) < 0) return;
  if (error >= 0 && ::dup2(error, STDERR_FILENO) < 0) return;
  if (command.largest_file > 0) {
    const rlimit limit{command.largest_file, command.largest_file};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (*directory && ::chdir(directory) != 0) return;
  ::execvpe(arguments[0], arguments, environment);
}

}  // namespace

Process spawn(const Command& command, Wiring wiring) {
  auto arguments = command.arguments;
  auto environment = environment_of(command);
  const auto argv = pointers(arguments), envp = pointers(environment);
  const std::string directory = command.directory.string();
  Pipe output = wiring.pipe_output ? make_pipe() : Pipe{};
  Pipe error = wiring.pipe_error ? make_pipe() : Pipe{};
  Pipe failure = make_pipe();  // closed by a successful exec, else tells why not

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(std::string("Cannot start a process: ") + std::strerror(errno) + ".");
  if (pid == 0) {
    become(parent, command, directory.c_str(), argv.data(), envp.data(), output.write.get(),
           error.write.get());
    const int reason = errno;
    [[maybe_unused]] const auto written = ::write(failure.write.get(), &reason, sizeof reason);
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // both do it, so that it is done whoever comes first
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
