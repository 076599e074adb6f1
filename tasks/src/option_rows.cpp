#include "option_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace tasks {
namespace {

constexpr int64_t largest_count = 1'000'000'000;

void set_data(Options& options, const Value& value) { options.data = value.text; }
void set_epochs(Options& options, const Value& value) {
  options.epochs = parse_integer(value, 1, largest_count);
}
void set_max_steps(Options& options, const Value& value) {
  options.max_steps = parse_integer(value, 0, largest_count);
}
void set_batch_size(Options& options, const Value& value) {
  options.batch_size = parse_integer(value, 1, largest_count);
}

void set_precision(Options& options, const Value& value) {
  const std::string& text = value.text;
  if (text != "fp32" && text != "tf32" && text != "bf16" && text != "fp16" && text != "fp64") {
    throw Error(
        fmt::format("{}: expected fp32, tf32, bf16, fp16 or fp64, got '{}'", value.where, text));
  }
  options.precision = text == "fp64" ? torch::kFloat64 : torch::kFloat32;
  options.products = text == "tf32"   ? Products::tf32
                     : text == "bf16" ? Products::bf16
                     : text == "fp16" ? Products::fp16
                                      : Products::as_stored;
}

// "loss,graph": the parts of that name; "all" and "none". Whether a task has them is seen later.
void set_fast(Options& options, const Value& value) {
  options.fast = {.parts = {}, .all = value.text == "all"};
  if (value.text == "all" || value.text == "none") return;
  std::string_view rest = value.text;
  do {
    const auto name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    options.fast.parts.emplace(name);
  } while (!rest.empty());
}

void set_seed(Options& options, const Value& value) {
  options.seed =
      static_cast<uint64_t>(parse_integer(value, 0, std::numeric_limits<int64_t>::max()));
}
void set_deterministic(Options& options, const Value& value) {
  options.deterministic = parse_boolean(value);
}

void set_device(Options& options, const Value& value) {
  options.device.reset();
  const std::string& text = value.text;
  if (text == "auto") return;
  if (text == "cpu" || text == "cuda") {
    options.device = torch::Device(text);
  } else if (text.starts_with("cuda:")) {
    const auto index = parse_integer({text.substr(5), value.where}, 0, 127);
    options.device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
  } else {
    throw Error(
        fmt::format("{}: expected auto, cpu, cuda or cuda:<number>, got '{}'", value.where, text));
  }
}

void set_backend(Options& options, const Value& value) {
  if (value.text != "nccl" && value.text != "gloo") {
    throw Error(fmt::format("{}: expected nccl or gloo, got '{}'", value.where, value.text));
  }
  options.backend = value.text;
}
void set_threads(Options& options, const Value& value) {
  options.threads = static_cast<int>(parse_integer(value, 0, 1024));
}

void set_output(Options& options, const Value& value) {
  if (value.text.empty()) throw Error(value.where + ": the folder's name is empty");
  options.output = value.text;
}

void set_checkpoint_every(Options& options, const Value& value) {
  options.checkpoint_every = parse_integer(value, 0, largest_count);
}
void set_from(Options& options, const Value& value) {
  if (value.text.empty()) throw Error(value.where + ": the folder's name is empty");
  options.from = value.text;
}
void set_monitor(Options& options, const Value& value) { options.monitor = parse_boolean(value); }
void set_memory_limit(Options& options, const Value& value) {
  options.memory_limit = parse_integer(value, 0, largest_count);
}
void set_resume(Options& options, const Value& value) { options.resume = parse_boolean(value); }

constexpr std::array rows{
    OptionRow{"data", "DIR", "the task's own", "folder with the data", set_data},
    OptionRow{"output", "DIR", "output", "folder for the files that a run writes", set_output},
    OptionRow{"epochs", "N", "", "passes over the training split", set_epochs},
    OptionRow{"max-steps", "N", "0", "total number of optimizer steps; 0: no limit", set_max_steps},
    OptionRow{"batch-size", "N", "", "samples per rank and step", set_batch_size},
    OptionRow{"precision", "PRECISION", "fp32",
              "fp32 or fp64; or fp32 with products in tf32 (GPUs), bf16 or fp16", set_precision},
    OptionRow{"fast", "[=PARTS]", "none",
              "fast parts: all, or a list of graph and the task's own, separated by commas",
              set_fast},
    OptionRow{"seed", "N", "0", "seed for model init, dropout and sample order", set_seed},
    OptionRow{"deterministic", "", "false",
              "use only algorithms that give the same bits every time", set_deterministic},
    OptionRow{"device", "DEVICE", "auto",
              "auto, cpu, cuda or cuda:<number>; auto takes a GPU if there is one", set_device},
    OptionRow{"backend", "nccl|gloo", "as the device needs", "how ranks communicate", set_backend},
    OptionRow{"checkpoint-every", "N", "0",
              "save every N optimizer steps; 0: never. Not every trainer can",
              set_checkpoint_every},
    OptionRow{"resume", "", "false", "continue from the newest checkpoint, if there is one",
              set_resume},
    OptionRow{"from", "DIR", "", "folder of the model to start from. Not every trainer can",
              set_from},
    OptionRow{"monitor", "", "false", "record the run for ./workbook monitor", set_monitor},
    OptionRow{"memory-limit", "MB", "0", "memory for the tensors of a rank on the CPU; 0: no limit",
              set_memory_limit},
    OptionRow{"threads", "N", "0",
              "CPU threads per rank; 0: torch decides, and on GPUs all cores load", set_threads},
};

}  // namespace

std::string OptionRow::key() const {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::span<const OptionRow> option_rows() { return rows; }

}  // namespace tasks
