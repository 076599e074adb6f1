#include "distributed_utils/setup.hpp"

#include <fmt/format.h>
#include <torch/cuda.h>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <charconv>
#include <csignal>
#include <numeric>

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "distributed_utils/observer.hpp"
#include "group/backend.hpp"
#include "group/world.hpp"
#include "launch/rendezvous.hpp"

namespace distributed_utils {
namespace {

c10::Device pick_device(const SetupOptions& options, const Launch& launch) {
  const bool wants_gpu = options.device ? options.device->is_cuda() : torch::cuda::is_available();
  if (!wants_gpu) return options.device.value_or(c10::Device(c10::kCPU));
  const int gpus = static_cast<int>(torch::cuda::device_count());
  if (gpus == 0) throw Error("--device cuda: no usable GPU here. Fix: --device cpu.");
  if (options.device && options.device->has_index()) {
    if (options.device->index() < gpus) return *options.device;
    throw Error(fmt::format("--device cuda:{}: this process sees {} GPUs, numbered from 0.",
                            static_cast<int>(options.device->index()), gpus));
  }
  // Slurm can show each task only its own GPU, which is then number 0 for everyone.
  if (gpus == 1 && launch.launcher == "Slurm") return {c10::kCUDA, 0};
  if (launch.local_rank >= gpus) {
    throw Error(
        fmt::format("local rank {} has no GPU of its own: this process sees {}. Fix: start at "
                    "most {} ranks on "
                    "a node, or ask for more GPUs (--gres=gpu:N), or use --device cpu.",
                    launch.local_rank, gpus, gpus));
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(launch.local_rank)};
}

std::string pick_backend(const SetupOptions& options, c10::Device device) {
  if (options.backend.empty()) return device.is_cuda() && detail::has_nccl() ? "nccl" : "gloo";
  if (options.backend != "nccl" && options.backend != "gloo") {
    throw Error(fmt::format("backend '{}': expected nccl or gloo.", options.backend));
  }
  if (options.backend == "nccl" && !device.is_cuda()) {
    throw Error(
        "backend 'nccl' reduces on GPUs, but this rank's device is the CPU. Fix: --backend gloo.");
  }
  return options.backend;
}

std::chrono::milliseconds default_timeout() {
  const auto text = process_environment("SETUP_TIMEOUT");
  if (!text) return std::chrono::minutes(2);
  double seconds = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, seconds);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(seconds > 0 && seconds < 1e6)) {
    throw Error(fmt::format("SETUP_TIMEOUT='{}': expected a number of seconds.", *text));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void make_current(c10::Device device) {
  // Through the guard registry instead of the CUDA runtime, so that one source serves both builds.
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
}

// Gloo writes to sockets by writev(), and a peer that is gone must be an error with words, not the
// end of this process. Python's interpreter ignores the signal as well.
void ignore_broken_pipes() {
  struct sigaction present = {};
  ::sigaction(SIGPIPE, nullptr, &present);
  if (present.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

World setup(const SetupOptions& options) {
  if (is_initialized()) {
    throw Error(
        "setup() was called twice. Fix: call it once, or call destroy_process_group() in between.");
  }
  if (Observer* const watching = observer()) {
    watching->setup_called({.backend = options.backend, .device = options.device});
  }
  ignore_broken_pipes();
  const Launch launch = read_launch();
  const c10::Device device = pick_device(options, launch);
  const std::string backend = pick_backend(options, device);
  make_current(device);
  const std::string init_method = options.init_method.empty()
                                      ? process_environment("INIT_METHOD").value_or("")
                                      : options.init_method;
  const auto timeout = options.timeout.value_or(default_timeout());
  const auto rendezvous = detail::meet(init_method, launch, timeout);
  std::vector<int> ranks(launch.world_size);
  std::iota(ranks.begin(), ranks.end(), 0);
  auto state = std::make_unique<detail::WorldState>(detail::WorldState{
      .group = {},
      .store = rendezvous.store,
      .rank_zero_serves = rendezvous.rank_zero_serves,
      .device = device,
      .backend = backend,
      .timeout = timeout,
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
