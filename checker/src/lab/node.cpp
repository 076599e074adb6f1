#include "lab/node.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>

#include "lab/complaint.hpp"
#include "lab/configuration.hpp"
#include "lab/daemons.hpp"
#include "lab/isolation.hpp"
#include "process/family.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// A cable from the node's eth0 to the controller's bridge.
void connect(size_t number, const Descriptor& controllers_network) {
  const auto name = node_name(number);
  const Descriptor ours = present_network();
  // As /proc shows it to ip: we are the first process of the node.
  const auto ours_named = "/proc/1/fd/" + std::to_string(ours.get());
  with_network(controllers_network, [&] {
    // The kernel takes its time to remove what a killed node leaves.
    run_script("connect " + name, "ip link del " + name + " 2>/dev/null || true\n" +
                                      "ip link add " + name + " type veth peer name eth0 netns " +
                                      ours_named + "\nip link set " + name + " master br0 up");
  });
  run_script("connect " + name, "ip link set lo up\nip addr add " + node_address(number) +
                                    "/24 dev eth0\nip link set eth0 up");
}

// Collects what ends on the node until slurmd does.
void look_after(pid_t slurmd) {
  for (;;) {
    const pid_t ended = ::wait(nullptr);
    if (ended == slurmd || (ended < 0 && errno == ECHILD)) return;
  }
}

void be_node(const fs::path& folder, size_t number, Complaint& complaint) {
  const auto name = node_name(number);
  const char* path = std::getenv("PATH");
  const std::string search_path = path ? path : "";
  leave_everything({complaint.descriptor()});
  use_daemon_environment(folder, search_path);
  ::prctl(PR_SET_NAME, name.c_str());
  const Descriptor controllers_network = present_network();
  isolate(name);
  mount_memory("/dev/shm");  // as every machine has its own, and so that nothing stays in ours
  connect(number, controllers_network);
  const auto slurmd = start_daemon(folder, name, {"slurmd", "-D", "-N", name});
  complaint.nothing();
  look_after(slurmd);
}

}  // namespace

void start_node(const fs::path& folder, size_t number) {
  Complaint complaint;
  fork_first_process([&] { complaint.guard([&] { be_node(folder, number, complaint); }); });
  complaint.await();
}

pid_t find_node(pid_t lab, size_t number) {
  for (const pid_t pid : children_of(lab)) {
    if (name_of(pid) == node_name(number) && !is_zombie(pid)) return pid;
  }
  return 0;
}

}  // namespace checker
