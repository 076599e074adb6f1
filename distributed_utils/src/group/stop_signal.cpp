#include "distributed_utils/stop_signal.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
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

// A number on its way from a GPU to the host, which does not wait for it.
struct Arriving {
  explicit Arriving(const torch::Tensor& number)
      : value(torch::empty({1}, torch::dtype(torch::kInt).pinned_memory(true))),
        arrived(number.device().type()) {
    value.copy_(number, /*non_blocking=*/true);
    arrived.record(c10::impl::VirtualGuardImpl(number.device().type()).getStream(number.device()));
  }

  torch::Tensor value;
  c10::Event arrived;
};

}  // namespace

struct StopSignal::State {
  Group group;
  std::array<struct sigaction, kSignals.size()> before{};
  torch::Tensor anybody;  // 1 once any rank was told; defined while `reduced` runs
  std::optional<Work> reduced;
  std::optional<Arriving> arriving;  // the answer of the step before, from a GPU

  bool take_answer();
};

// Of the last step; from a GPU that of the step before, so that the host runs ahead of it.
bool StopSignal::State::take_answer() {
  if (!reduced) return false;
  reduced->wait();
  reduced.reset();
  if (!anybody.is_cuda()) return anybody.item<int>() != 0;
  bool stop = false;
  if (arriving) {
    arriving->arrived.synchronize();
    stop = arriving->value.item<int>() != 0;
  }
  arriving.emplace(anybody);
  return stop;
}

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
  if (state_->take_answer()) return true;
  state_->anybody =
      torch::full({1}, told ? 1 : 0, torch::dtype(torch::kInt).device(device_of_reduction()));
  state_->reduced = all_reduce_async(state_->anybody, ReduceOp::MAX, state_->group);
  return false;
}

}  // namespace distributed_utils
