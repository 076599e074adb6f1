#include "lab/first_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>

#include "lab/configuration.hpp"
#include "lab/daemons.hpp"
#include "lab/impossible.hpp"
#include "lab/isolation.hpp"
#include "lab/node.hpp"
#include "process/signals.hpp"
#include "process/spawn.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

void write_key(const fs::path& file) {
  std::string key(128, '\0');
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    throw Error("Cannot make a key for munge.");
  }
  write_file(file, key);
  checked(::chmod(file.c_str(), 0400), "protect " + file.string());
}

// All files of the lab, in memory and seen by nobody else.
void write_files(const LabOptions& options, const fs::path& folder) {
  mount_memory(folder);
  for (const auto* name : {"state", "log", "dev"}) fs::create_directory(folder / name);
  for (size_t gpu = 0; gpu < options.gpus_per_node; ++gpu) {
    const auto device = folder / "dev" / ("nvidia" + std::to_string(gpu));
    checked(::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)), "make " + device.string());
  }
  write_key(folder / "munge.key");
  write_file(folder / "slurm.conf", slurm_conf(options, folder));
  write_file(folder / "gres.conf", gres_conf(options, folder));
  write_file(folder / "cgroup.conf", "CgroupPlugin=cgroup/v1\n");
  write_file(folder / "hosts", lab_hosts(options));
  mount_over("/etc/hosts", folder / "hosts");
}

bool controller_listens() {
  std::array<char, 16> local{};
  std::snprintf(local.data(), local.size(), ":%04X ", lab_controller_port);
  return read_file("/proc/net/tcp").find(std::string(local.data()) + "00000000:0000 0A") !=
         std::string::npos;
}

class FirstProcess {
 public:
  FirstProcess(const fs::path& folder, const Descriptor& line) : folder_(folder), line_(line) {}

  void start(const LabOptions& options) {
    isolate(lab_controller);
    write_files(options, folder_);
    run_script("make the lab's network",
               "ip link set lo up\nip link add br0 type bridge\nip addr add " +
                   controller_address() + "/24 dev br0\nip link set br0 up");
    const auto file = [&](const char* name) { return (folder_ / name).string(); };
    start_daemon("munged",
                 {"munged", "--foreground", "--num-threads=4", "--key-file=" + file("munge.key"),
                  "--socket=" + file("munge.socket"), "--pid-file=" + file("munge.pid"),
                  "--seed-file=" + file("munge.seed")});
    await([&] { return fs::exists(folder_ / "munge.socket"); });
    start_daemon("slurmctld", {"slurmctld", "-D"});
    await(controller_listens);
    for (size_t number = 1; number <= options.nodes; ++number) start_node(folder_, number);
    say(lab_started);
  }

  void look_after() {
    const SignalWatch signals;
    bool end = false;
    while (!end) {
      reap();
      std::array<pollfd, 2> watched{{{signals.descriptor(), POLLIN, 0}, {line_end_, POLLIN, 0}}};
      ::poll(watched.data(), watched.size(), -1);
      signals.read([&](int signal) { end = end || signal == SIGTERM; });
      if (watched[1].revents != 0) listen();
    }
  }

  void say(const std::string& text) const {
    ::send(line_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  void start_daemon(const std::string& name, const std::vector<std::string>& command) {
    daemons_[checker::start_daemon(folder_, name, command)] = name;
  }

  // Collects what has ended; a lab without munged or slurmctld is none.
  void reap() {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto daemon = daemons_.find(ended);
      if (daemon == daemons_.end()) continue;
      Exit exit;
      (WIFSIGNALED(status) ? exit.signal : exit.code) =
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      throw Error(daemon->second + " ended: " + exit.describe() +
                  ". Its last lines:" + last_words(folder_, daemon->second));
    }
  }

  // Until something is there. For how long is for the process to decide that starts the lab.
  void await(const std::function<bool()>& condition) {
    while (!condition()) {
      reap();
      pollfd line{line_end_, POLLIN, 0};
      if (::poll(&line, 1, 5) > 0) listen();
    }
  }

  // The end of the line is the end of the process that started us.
  void listen() {
    std::array<char, 16> word{};
    const auto got = ::recv(line_end_, word.data(), word.size() - 1, MSG_DONTWAIT);
    if (got < 0) return;
    if (std::strcmp(word.data(), lab_stays) != 0)
      throw Error("The program that started the lab has ended.");
    line_end_ = -1;
  }

  const fs::path& folder_;
  const Descriptor& line_;
  int line_end_ = line_.get();  ///< -1, which poll ignores, once the lab goes on by itself
  std::map<pid_t, std::string> daemons_;
};

}  // namespace

void be_first_process(const LabOptions& options, const fs::path& folder, const Descriptor& line,
                      const Descriptor& lock) {
  const auto search_path = lab_search_path();
  leave_everything({line.get(), lock.get()});
  use_daemon_environment(folder, search_path);
  ::prctl(PR_SET_NAME, "worldsize-lab");
  FirstProcess process(folder, line);
  try {
    process.start(options);
    process.look_after();
  } catch (const std::exception& error) {
    process.say(error.what());
  }
}

}  // namespace checker
