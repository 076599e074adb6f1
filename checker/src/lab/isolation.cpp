#include "lab/isolation.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <vector>

#include "lab/complaint.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

Descriptor open_namespace(const char* file) {
  return Descriptor(checked(::open(file, O_RDONLY | O_CLOEXEC), std::string("open ") + file));
}

// glibc 2.36 has a function for it; older ones do not.
int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void wait_for_child(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::vector<int> open_descriptors() {
  std::vector<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    numbers.push_back(std::stoi(entry.path().filename()));
  }
  return numbers;
}

}  // namespace

bool is_root() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  return ::geteuid() == 0 && count > 100'000;
}

int checked(int result, const std::string& what) {
  if (result == -1) throw Error("Cannot " + what + ": " + std::strerror(errno) + ".");
  return result;
}

pid_t fork_first_process(const std::function<void()>& action) {
  const Descriptor ours = open_namespace("/proc/self/ns/pid");
  checked(::unshare(CLONE_NEWPID), "make a PID namespace");
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  const int reason = errno;
  checked(::setns(ours.get(), CLONE_NEWPID), "return to our own PID namespace");
  errno = reason;
  return checked(child, "start a process");
}

int separate_mounts() { return ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr); }

void isolate(const std::string& host_name) {
  checked(::unshare(lab_namespaces), "make namespaces");
  checked(::sethostname(host_name.data(), host_name.size()), "name a machine");
  checked(separate_mounts(), "separate the mounts");
  checked(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr),
          "mount /proc");
}

void inside(pid_t process, const std::function<void()>& action) {
  Complaint complaint;
  const pid_t child = checked(::fork(), "start a process");
  if (child == 0) {
    complaint.guard([&] {
      const Descriptor target(checked(open_process(process), "find the lab's first process"));
      checked(::setns(target.get(), CLONE_NEWPID | lab_namespaces), "enter the lab");
      // Only a child is in the PID namespace.
      const pid_t inner = checked(::fork(), "start a process");
      if (inner == 0) {
        complaint.guard(action);
        ::_exit(0);
      }
      wait_for_child(inner);
    });
    ::_exit(0);
  }
  wait_for_child(child);
  complaint.await();
}

void with_network(const Descriptor& network, const std::function<void()>& action) {
  const Descriptor ours = present_network();
  checked(::setns(network.get(), CLONE_NEWNET), "enter a network");
  action();
  checked(::setns(ours.get(), CLONE_NEWNET), "leave a network");
}

Descriptor present_network() { return open_namespace("/proc/self/ns/net"); }

void mount_memory(const std::filesystem::path& folder) {
  checked(::mount("lab", folder.c_str(), "tmpfs", MS_NOSUID, "mode=755"),
          "mount a file system in memory on " + folder.string());
}

void mount_over(const std::filesystem::path& file, const std::filesystem::path& by) {
  checked(::mount(by.c_str(), file.c_str(), nullptr, MS_BIND, nullptr),
          "mount " + by.string() + " over " + file.string());
}

void leave_everything(std::initializer_list<int> kept) {
  ::setsid();
  ::umask(022);
  checked(::chdir("/"), "go to /");
  ::clearenv();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  const int nothing = checked(::open("/dev/null", O_RDWR), "open /dev/null");
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  for (const int number : open_descriptors()) {
    if (number > STDERR_FILENO && std::ranges::find(kept, number) == kept.end()) ::close(number);
  }
}

void write_to(const std::filesystem::path& log) {
  const Descriptor file(
      checked(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
              "write " + log.string()));
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

bool has_ended(pid_t process) {
  const Descriptor watched(open_process(process));
  pollfd until{watched.get(), POLLIN, 0};
  return !watched.is_open() || ::poll(&until, 1, 0) > 0;
}

void await_end(pid_t process) {
  const Descriptor watched(open_process(process));
  if (!watched.is_open()) return;
  // A command whose waiting nsenter was killed is a child of the machine's PID 1; where that one
  // does not reap, its zombie keeps the namespace's first process, by then an empty shell, forever.
  constexpr int patience_ms = 10'000;
  pollfd until{watched.get(), POLLIN, 0};
  while (::poll(&until, 1, patience_ms) < 0 && errno == EINTR) {
  }
}

}  // namespace checker
