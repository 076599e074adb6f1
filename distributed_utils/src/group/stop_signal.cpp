#include "distributed_utils/stop_signal.hpp"

#include <torch/types.h>

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <optional>

#include "distributed_utils/collectives.hpp"
#include "group/backend.hpp"
#include "group/world.hpp"

namespace distributed_utils {
namespace {

constexpr std::array kSignals{SIGUSR1, SIGTERM};

std::atomic<bool> told{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void note(int /*signal*/) { told = true; }

// Gloo reduces on the CPU without a word to the GPU.
torch::Device device_of_reduction() {
  return detail::has_gloo() ? torch::Device(torch::kCPU) : detail::world_state()->device;
}

}  // namespace

struct StopSignal::State {
  Group group;
  std::array<struct sigaction, kSignals.size()> before{};
  torch::Tensor anybody;  // 1 once any rank was told; defined while `reduced` runs
  std::optional<Work> reduced;
};

StopSignal::StopSignal(const Group& group) : state_(std::make_unique<State>()) {
  state_->group = group;
  told = false;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals.at(i), &action, &state_->before.at(i));
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals.at(i), &state_->before.at(i), nullptr);
  }
  if (!state_->reduced || std::uncaught_exceptions() > 0) return;
  try {
    state_->reduced->wait();         // every rank began it, so it ends
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a rank died; others say so
  }
}

bool StopSignal::after_step() {
  if (get_world_size(state_->group) == 1) return told;
  bool stop = false;
  if (state_->reduced) {
    state_->reduced->wait();
    stop = state_->anybody.item<int>() != 0;
    state_->reduced.reset();
  }
  if (stop) return true;
  state_->anybody =
      torch::full({1}, told ? 1 : 0, torch::dtype(torch::kInt).device(device_of_reduction()));
  state_->reduced = all_reduce_async(state_->anybody, ReduceOp::MAX, state_->group);
  return false;
}

}  // namespace distributed_utils
