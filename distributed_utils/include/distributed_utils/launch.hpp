#pragma once
/// Reads what a launcher (torchrun, Slurm, Open MPI) tells a rank through environment variables:
/// its rank, the world size, and where the ranks meet.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace distributed_utils {

struct Launch {
  std::string launcher = "none";  ///< "torchrun", "Slurm", "Open MPI" or "none"
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  bool single_node = true;          ///< all ranks on this node, as far as is known
  std::string master_addr = {};     ///< host of rank 0; empty for launcher "none"
  uint16_t master_port = 0;         ///< 0 for launcher "none"
  bool agent_store = false;         ///< torchrun's agent already serves the store at that address
  std::string restart_count = "0";  ///< of torchrun's agent: a restart must not meet old keys
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
std::optional<std::string> process_environment(const std::string& name);

/// Reads, in this order: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
/// TORCHELASTIC_* (torchrun; docs.pytorch.org/docs/stable/elastic/run.html), SLURM_PROCID,
/// SLURM_LOCALID, SLURM_STEP_* (only inside srun: slurm.schedmd.com/srun.html, OUTPUT ENVIRONMENT
/// VARIABLES), OMPI_COMM_WORLD_* (Open MPI). If Slurm or Open MPI name no master, it is the first
/// node of the step, or this node if all ranks are on it. The port then follows from the job id, so
/// two jobs on one node do not meet. Throws Error for a missing variable or one that is not a
/// number.
Launch read_launch(const Environment& environment = process_environment);

/// The first host of a Slurm node list: "node[07-09,12],login" gives "node07".
std::string first_host(std::string_view node_list);

}  // namespace distributed_utils
