#include "distributed_utils/launch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

// Ports above the well-known ones and below Linux's ephemeral range (32768 and up), where an
// outgoing connection could already sit.
constexpr int64_t kFirstPort = 10000;
constexpr int64_t kPorts = 20000;

/// Numbers out of an environment, with errors that name the variable.
class Reader {
 public:
  Reader(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  bool has(const std::string& name) const {
    const auto value = environment_(name);
    return value && !value->empty();
  }

  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? *environment_(name) : otherwise;
  }

  int64_t number(const std::string& name, int64_t least, int64_t most) const {
    if (!has(name)) {
      throw Error(
          fmt::format("{} is not set, though other variables of {} are. Fix: start through "
                      "torchrun, srun or mpirun, which set all of them.",
                      name, launcher_));
    }
    const std::string value = *environment_(name);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least ||
        number > most) {
      throw Error(fmt::format("{}='{}' is not a number from {} to {}.", name, value, least, most));
    }
    return number;
  }

  int64_t number(const std::string& name, int64_t least, int64_t most, int64_t otherwise) const {
    return has(name) ? number(name, least, most) : otherwise;
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

constexpr int64_t kMaxRanks = 1 << 20;

void read_master_port(const Reader& read, int64_t job_id, Launch& launch) {
  launch.master_port =
      static_cast<uint16_t>(read.number("MASTER_PORT", 1, 65535, kFirstPort + job_id % kPorts));
}

Launch read_torchrun(const Reader& read) {
  Launch launch{.launcher = "torchrun"};
  launch.world_size = static_cast<int>(read.number("WORLD_SIZE", 1, kMaxRanks));
  launch.rank = static_cast<int>(read.number("RANK", 0, launch.world_size - 1));
  launch.local_rank = static_cast<int>(read.number("LOCAL_RANK", 0, launch.rank));
  launch.single_node =
      read.number("LOCAL_WORLD_SIZE", 1, launch.world_size, 1) == launch.world_size;
  launch.master_addr = read.text("MASTER_ADDR", "");
  if (!launch.master_addr.empty()) {
    launch.master_port = static_cast<uint16_t>(read.number("MASTER_PORT", 1, 65535));
  }
  launch.agent_store = read.text("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
  launch.restart_count = read.text("TORCHELASTIC_RESTART_COUNT", "0");
  return launch;
}

Launch read_slurm(const Reader& read) {
  Launch launch{.launcher = "Slurm"};
  launch.world_size = static_cast<int>(read.number("SLURM_STEP_NUM_TASKS", 1, kMaxRanks));
  launch.rank = static_cast<int>(read.number("SLURM_PROCID", 0, launch.world_size - 1));
  launch.local_rank = static_cast<int>(read.number("SLURM_LOCALID", 0, launch.rank));
  launch.single_node = read.number("SLURM_STEP_NUM_NODES", 1, kMaxRanks) == 1;
  launch.master_addr = read.text(
      "MASTER_ADDR", launch.single_node ? std::string("127.0.0.1")
                                        : first_host(read.text("SLURM_STEP_NODELIST", "")));
  // Two steps of one job may run at once, so the step counts too. Its id can be a huge number with
  // a meaning of its own ("interactive"), hence the remainder.
  const int64_t step = read.number("SLURM_STEP_ID", 0, INT64_MAX) % 100;
  read_master_port(read, read.number("SLURM_JOB_ID", 0, INT64_MAX / 128) * 100 + step, launch);
  return launch;
}

Launch read_open_mpi(const Reader& read) {
  Launch launch{.launcher = "Open MPI"};
  launch.world_size = static_cast<int>(read.number("OMPI_COMM_WORLD_SIZE", 1, kMaxRanks));
  launch.rank = static_cast<int>(read.number("OMPI_COMM_WORLD_RANK", 0, launch.world_size - 1));
  launch.local_rank = static_cast<int>(read.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, launch.rank));
  launch.single_node =
      read.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, launch.world_size) == launch.world_size;
  launch.master_addr = read.text("MASTER_ADDR", launch.single_node ? "127.0.0.1" : "");
  if (launch.master_addr.empty()) {
    throw Error(
        "mpirun started ranks on several nodes, and MASTER_ADDR is not set. Fix: "
        "mpirun -x MASTER_ADDR=<host of rank 0> -x MASTER_PORT=29500 ...");
  }
  // All ranks of one mpirun share its process as parent's id only on one node; the job id in the
  // name space string is common to all.
  int64_t job = 0;
  for (const char c : read.text("PMIX_NAMESPACE", "")) job = (job * 31 + c) % kPorts;
  read_master_port(read, job, launch);
  return launch;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Launch read_launch(const Environment& environment) {
  const Reader any(environment, "the launcher");
  if (any.has("RANK") || any.has("WORLD_SIZE")) return read_torchrun({environment, "torchrun"});
  // Slurm sets SLURM_PROCID in a batch script too, where only one process runs whatever the number
  // of tasks is; only srun sets the step's number of tasks.
  if (any.has("SLURM_PROCID") && any.has("SLURM_STEP_NUM_TASKS")) {
    return read_slurm({environment, "Slurm"});
  }
  if (any.has("OMPI_COMM_WORLD_RANK")) return read_open_mpi({environment, "Open MPI"});
  return {};
}

std::string first_host(std::string_view node_list) {
  const size_t bracket = node_list.find('[');
  const size_t comma = node_list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) {
    return std::string(node_list.substr(0, comma));
  }
  const size_t close = node_list.find(']', bracket);
  if (close == std::string_view::npos) {
    throw Error(fmt::format("SLURM_STEP_NODELIST='{}' has a '[' without its ']'.", node_list));
  }
  const std::string_view ranges = node_list.substr(bracket + 1, close - bracket - 1);
  const std::string_view rest = node_list.substr(close + 1);
  // What follows the brackets up to the next comma belongs to the same name: "rack[1-2]-ib".
  return fmt::format("{}{}{}", node_list.substr(0, bracket),
                     ranges.substr(0, ranges.find_first_of("-,")), first_host(rest));
}

}  // namespace distributed_utils
