// What options set for a whole process.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "distributed_utils/error.hpp"
#include "graph/graph.hpp"
#include "instrumentation/memory.hpp"
#include "instrumentation/monitoring.hpp"
#include "instrumentation/recording.hpp"
#include "phases.hpp"
#include "tasks/options.hpp"
#include "tasks/parallel.hpp"

namespace tasks {
namespace {

void check_device(torch::Device device) {
  if (!device.is_cuda()) return;
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  if (count == 0) {
    throw Error("--device: LibTorch finds no usable GPU here; use --device cpu");
  }
  if (device.has_index() && device.index() >= count) {
    throw Error(fmt::format("--device: {} does not exist; the last GPU here is cuda:{}",
                            device.str(), count - 1));
  }
}

void limit_memory(const Options& options) {
  if (options.device ? options.device->is_cuda() : torch::cuda::is_available()) {
    throw Error(
        "--memory-limit: it limits the memory of CPUs, and this run trains on a GPU. Fix: add "
        "--device cpu, or leave it out.");
  }
  constexpr uint64_t kMega = 1'000'000;
  instrumentation::memory::limit(static_cast<uint64_t>(options.memory_limit) * kMega,
                                 "--memory-limit");
}

void make_deterministic() {
  // cuBLAS reads this when its first handle is made; the value is the one that PyTorch asks for:
  // https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(/*deterministic=*/true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

// What a step frees, the next one allocates again. glibc would hand large tensors back to the
// kernel, which gives them out again page by page, cleared: a tenth of a step on a laptop.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

void make_output_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (!failure && access(folder.c_str(), W_OK | X_OK) != 0) {
    failure = {errno, std::generic_category()};
  }
  if (failure) {
    throw Error(fmt::format("--output: cannot write to the folder {}: {}; choose another",
                            folder.string(), failure.message()));
  }
}

std::string configuration_of(const Options& options) {
  return fmt::format(
      "task={}\nconfig={}\ndata={}\nepochs={}\nmax_steps={}\nbatch_size={}\nprecision={}\n"
      "seed={}\ndevice={}\nthreads={}\nloading_threads={}\noutput={}\n",
      options.task, options.config, options.data ? options.data->string() : "the task's own",
      options.epochs, options.max_steps, options.batch_size, c10::toString(options.precision),
      options.seed, options.device ? options.device->str() : "auto", at::get_num_threads(),
      parallel_threads(), options.output.string());
}

// A run goes on without being monitored, too.
void start_monitoring(const Options& options) {
  if (instrumentation::monitoring::enabled()) return;  // apply() may be called again
  try {
    instrumentation::monitoring::start(
        {.folder = options.output / "monitor", .configuration = configuration_of(options)});
    phases::begin();
  } catch (const distributed_utils::Error& error) {
    fmt::print(stderr, "warning: --monitor: {}\n", error.what());
  }
}

// torchrun and ./workbook run leave torch one thread a rank, which is too little to load for a GPU.
void use_threads(const Options& options) {
  if (options.threads > 0) {
    at::set_num_threads(options.threads);
  } else if (options.device ? options.device->is_cuda() : torch::cuda::is_available()) {
    set_parallel_threads(std::max(at::get_num_threads(), cores_of_rank()));
  }
}

}  // namespace

void apply(const Options& options) {
  if (instrumentation::recording::enabled()) {
    phases::begin();
    instrumentation::memory::count();
  }
  report_uncaught();
  if (options.device) check_device(*options.device);
  if (options.memory_limit > 0) limit_memory(options);
  keep_freed_memory();
  use_threads(options);
  // cuDNN's kernels for a convolution differ by a factor, and it tells which is fastest by trying.
  at::globalContext().setBenchmarkCuDNN(true);
  if (options.deterministic) make_deterministic();
  if (options.products == Products::tf32) at::globalContext().setAllowTF32CuBLAS(true);
  torch::manual_seed(options.seed);
  graph::remember(options);
  // Into a pipe or a job's log too, lines appear as they are printed, and a crash loses none.
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  make_output_folder(options.output);
  if (options.monitor) start_monitoring(options);
}

}  // namespace tasks
