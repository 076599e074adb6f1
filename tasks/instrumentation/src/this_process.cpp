#include "this_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"

namespace instrumentation {
namespace {

using distributed_utils::Launch;
using distributed_utils::process_environment;

Launch launch_or_alone() {
  try {
    return distributed_utils::read_launch();
  } catch (const distributed_utils::Error&) {  // setup(), if the program calls it, says so
    return {};
  }
}

// Which of a job's nodes this is: torchrun counts agents, Slurm nodes.
uint32_t node_of(const Launch& launch) {
  if (launch.single_node) return 0;
  for (const char* variable : {"GROUP_RANK", "SLURM_NODEID"}) {
    const auto text = process_environment(variable);
    uint32_t node = 0;
    if (text &&
        std::from_chars(text->data(), text->data() + text->size(), node).ec == std::errc{}) {
      return node;
    }
  }
  return kUnknown;
}

// The same for all ranks of one run, as far as launchers tell; one process alone is a run.
uint64_t name_run(const Header& header) {
  std::string known;
  for (const char* variable : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
                               "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "INIT_METHOD",
                               "MASTER_ADDR", "MASTER_PORT", "PMIX_NAMESPACE"}) {
    if (const auto value = process_environment(variable)) {
      known += fmt::format("{}={};", variable, *value);
    }
  }
  if (known.empty()) known = fmt::format("{} {} {}", header.host, header.process, header.wall);
  return checksum(std::as_bytes(std::span(known)));
}

}  // namespace

uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

Header describe_process() {
  const Launch launch = launch_or_alone();
  Header header{};
  header.magic = kMagic;
  header.wall = static_cast<int64_t>(read_clock(CLOCK_REALTIME));
  header.nanoseconds = read_clock(CLOCK_MONOTONIC);
  header.rank = static_cast<uint32_t>(launch.rank);
  header.local_rank = static_cast<uint32_t>(launch.local_rank);
  header.world_size = static_cast<uint32_t>(launch.world_size);
  header.node = node_of(launch);
  header.process = static_cast<uint32_t>(getpid());
  gethostname(header.host, sizeof header.host - 1);
  if (const auto node = process_environment("SLURMD_NODENAME")) {  // as Slurm's users know it
    header.host[node->copy(header.host, sizeof header.host - 1)] = 0;
  }
  header.run = name_run(header);
  return header;
}

}  // namespace instrumentation
