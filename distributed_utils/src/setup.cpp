#include "distributed_utils/setup.hpp"

#include <fmt/format.h>
#include <torch/cuda.h>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <charconv>
#include <filesystem>
#include <numeric>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "backend.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "distributed_utils/recording.hpp"
#include "world.hpp"

namespace distributed_utils {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

c10::Device pick_device(const SetupOptions& options, const Launch& launch) {
  const bool wants_gpu = options.device ? options.device->is_cuda() : torch::cuda::is_available();
  if (!wants_gpu) return options.device.value_or(c10::Device(c10::kCPU));
  const int gpus = static_cast<int>(torch::cuda::device_count());
  if (gpus == 0) throw Error("--device cuda: no GPU can be used here. Mend: --device cpu.");
  if (options.device && options.device->has_index()) {
    if (options.device->index() < gpus) return *options.device;
    throw Error(fmt::format("--device cuda:{}: this process sees {} GPUs, numbered from 0.",
                            static_cast<int>(options.device->index()), gpus));
  }
  // Slurm can show each task only its own GPU, which is then number 0 for everyone.
  if (gpus == 1 && launch.launcher == "Slurm") return {c10::kCUDA, 0};
  if (launch.local_rank >= gpus) {
    throw Error(
        fmt::format("local rank {} has no GPU of its own: this process sees {}. Mend: start at "
                    "most {} ranks on "
                    "a node, or ask for more GPUs (--gres=gpu:N), or use --device cpu.",
                    launch.local_rank, gpus, gpus));
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(launch.local_rank)};
}

std::string pick_backend(const SetupOptions& options, c10::Device device) {
  if (options.backend.empty()) return device.is_cuda() && detail::has_nccl() ? "nccl" : "gloo";
  if (options.backend != "nccl" && options.backend != "gloo") {
    throw Error(fmt::format("backend '{}': wanted nccl or gloo.", options.backend));
  }
  if (options.backend == "nccl" && !device.is_cuda()) {
    throw Error(
        "backend 'nccl' reduces on GPUs, but this rank's device is the CPU. Mend: --backend gloo.");
  }
  return options.backend;
}

Store tcp_store(const std::string& host, uint16_t port, const Launch& launch, bool serve,
                std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serve;
  options.numWorkers = launch.world_size;
  options.timeout = timeout;
  options.waitWorkers = !launch.agent_store;  // the agent counts no workers
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

Store environment_store(const Launch& launch, std::chrono::milliseconds timeout) {
  if (launch.master_addr.empty()) {
    throw Error(fmt::format(
        "WORLD_SIZE is {}, but MASTER_ADDR is not set, so the ranks cannot find each other. Mend: "
        "export MASTER_ADDR and MASTER_PORT of rank 0, or start through torchrun.",
        launch.world_size));
  }
  Store store = tcp_store(launch.master_addr, launch.master_port, launch,
                          launch.rank == 0 && !launch.agent_store, timeout);
  if (!launch.agent_store) return store;
  // As Python's env:// does: a restarted group of workers must not read what the last one left.
  return c10::make_intrusive<c10d::PrefixStore>("/worker/attempt_" + launch.restart_count, store);
}

Store make_store(const std::string& init_method, const Launch& launch,
                 std::chrono::milliseconds timeout) {
  if (init_method.starts_with("file://")) {
    const std::string path = init_method.substr(7);
    if (!path.starts_with('/')) {
      throw Error(fmt::format("INIT_METHOD='{}': wanted file:///absolute/path.", init_method));
    }
    auto store = c10::make_intrusive<c10d::FileStore>(path, launch.world_size);
    store->setTimeout(timeout);
    return store;
  }
  if (init_method.starts_with("tcp://")) {
    const size_t colon = init_method.rfind(':');
    uint16_t port = 0;
    const char* end = init_method.data() + init_method.size();
    const auto parsed = std::from_chars(init_method.data() + colon + 1, end, port);
    if (colon <= 6 || parsed.ec != std::errc() || parsed.ptr != end || port == 0) {
      throw Error(fmt::format("INIT_METHOD='{}': wanted tcp://host:port.", init_method));
    }
    return tcp_store(init_method.substr(6, colon - 6), port, launch, launch.rank == 0, timeout);
  }
  if (!init_method.empty() && init_method != "env://") {
    throw Error(fmt::format("INIT_METHOD='{}': wanted env://, file:///path or tcp://host:port.",
                            init_method));
  }
  if (launch.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  return environment_store(launch, timeout);
}

void make_current(c10::Device device) {
  // Through the guard registry instead of the CUDA runtime, so that one source serves both builds.
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
}

}  // namespace

World setup(const SetupOptions& options) {
  if (is_initialized()) {
    throw Error("setup() was called twice. Mend: call it once, or destroy_process_group() before.");
  }
  const Launch launch = read_launch();
  const c10::Device device = pick_device(options, launch);
  const std::string backend = pick_backend(options, device);
  make_current(device);
  const std::string init_method = options.init_method.empty()
                                      ? process_environment("INIT_METHOD").value_or("")
                                      : options.init_method;
  std::vector<int> ranks(launch.world_size);
  std::iota(ranks.begin(), ranks.end(), 0);
  auto state = std::make_unique<detail::WorldState>(detail::WorldState{
      .group = {},
      .store = make_store(init_method, launch, options.timeout),
      .device = device,
      .backend = backend,
      .timeout = options.timeout,
      .single_node = launch.single_node,
  });
  state->group = detail::make_group(*state, "world", ranks, launch.rank);
  detail::world_state() = state.release();
  return {.rank = launch.rank,
          .local_rank = launch.local_rank,
          .world_size = launch.world_size,
          .device = device};
}

}  // namespace distributed_utils
