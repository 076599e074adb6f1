#pragma once
/// The options that every trainer takes, from the command line and a configuration file.
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tasks {

/// An error of the user's making: bad option, file or value. what() says what is wrong, where, and
/// how to fix it, in one or two sentences.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How matrices are multiplied whose elements are fp32. tf32: operands are rounded to 10 bits of
/// mantissa inside the GPU; CPUs multiply as ever. bf16: operands are rounded to 7 bits, in memory.
/// fp16: to 10 bits, in memory, and what is beyond 65504 or below 6e-8 is lost, so that the loss
/// must be scaled: see distributed_utils/grad_scaler.hpp.
enum class Products { as_stored, tf32, bf16, fp16 };

/// What --fast asks for: parts that trade a shorter source for speed; results stay the same but for
/// rounding. A task names its own (Entry::fast); "graph" is a trainer's: a whole step as one CUDA
/// graph (see step_graph.hpp).
struct Fast {
  std::set<std::string, std::less<>> parts;
  bool all = false;  ///< asked for without naming any: what applies

  bool has(std::string_view part) const { return parts.contains(part); }
};

struct Options {
  std::string task = "language_model";
  std::string config = "laptop";              ///< a name of the task's, or a path to a YAML file
  std::optional<std::filesystem::path> data;  ///< a folder; none: what the task has built in
  int64_t epochs = 0;
  int64_t max_steps = 0;                     ///< optimizer steps in all; 0: no limit
  int64_t batch_size = 0;                    ///< samples per rank and step
  torch::Dtype precision = torch::kFloat32;  ///< of the parameters
  Products products = Products::as_stored;   ///< for fp32 parameters
  Fast fast;
  uint64_t seed = 0;
  bool deterministic = false;
  std::optional<torch::Device> device;  ///< none: a GPU if there is one
  std::string backend;                  ///< "nccl" or "gloo"; empty: as the device needs
  int threads = 0;                      ///< of this rank; 0: as torch chooses
  std::filesystem::path output = "output";
  int64_t checkpoint_every = 0;  ///< optimizer steps; 0: no checkpoints, and signals end the run
  bool resume = false;           ///< from the newest checkpoint below output, if there is one
  std::optional<std::filesystem::path> from;  ///< a folder: the model to start from
  bool monitor = false;                       ///< record what the run does and uses, below output
  int64_t memory_limit = 0;  ///< MB of tensors that a rank may hold on the CPU; 0: no limit
};

/// What a trainer does beside training.
struct Abilities {
  bool checkpoints = false;  ///< it has a Checkpointing (see checkpointing.hpp)
  bool starts = false;       ///< it can start from a saved model
  bool scales = false;       ///< it has a GradScaler, without which nothing is trained in fp16
};

/// Options from the command line over those of the configuration file over the defaults. --help
/// prints the help and ends the program. Throws Error, also for options that ask for what this
/// trainer cannot do.
Options parse_options(int argc, char** argv, const Abilities& abilities = {});

/// Sets what is global in a process: number of threads, line-buffered output, deterministic
/// algorithms, and the seed of torch's generators, the same on every rank. Makes the output folder.
void apply(const Options& options);

/// For a trainer's last catch: prints the error on stderr, "error: ..." and returns the exit
/// status. A run that was told to stop and did (see checkpointing.hpp) has not failed: rank 0 says
/// so on stdout, and the status is 0.
int report(const std::exception& error);

/// From now on, exceptions that end the process uncaught are reported, too; apply() calls this.
void report_uncaught();

}  // namespace tasks
