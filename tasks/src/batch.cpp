#include "tasks/batch.hpp"

#include <atomic>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "fetched.hpp"
#include "instrumentation/recording.hpp"
#include "phases.hpp"

namespace tasks {

namespace recording = instrumentation::recording;
using instrumentation::Kind;

namespace {

void record_device(torch::Device device) {
  // Batches come by the thousand, devices change once: what was last recorded, 0 at first.
  static std::atomic<int> last{0};
  const int code = 1 + static_cast<int>(device.type()) * 1000 + device.index() + 1;
  if (last.exchange(code) != code) recording::record_text(Kind::device, device.str());
}

std::atomic<bool> some_go_to_gpus{false};

// To a GPU from pinned memory, so that nobody waits: the copy takes its place behind the kernels of
// the steps before, and the host goes on to fetch and enqueue what follows. What lies channels-last
// stays so.
torch::Tensor to_device(const torch::Tensor& tensor, torch::Device device) {
  if (!device.is_cuda() || !tensor.is_cpu()) return tensor.to(device);
  some_go_to_gpus = true;
  const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  return dense.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace

Input::Input(torch::Tensor tensor) { tensors_.push_back(std::move(tensor)); }

Input::operator const torch::Tensor&() const {
  if (tensors_.size() != 1) {
    throw std::logic_error("this input is " + std::to_string(tensors_.size()) +
                           " tensors: take them one by one, as input[0]");
  }
  return tensors_.front();
}

Input Input::to(torch::Device device) const {
  Input there;
  for (const auto& tensor : tensors_) there.tensors_.push_back(to_device(tensor, device));
  return there;
}

Input Input::clone() const {
  Input copy;
  for (const auto& tensor : tensors_) copy.tensors_.push_back(tensor.clone());
  return copy;
}

Target::Target(torch::Tensor tensor) : tensor_(std::move(tensor)), count_(tensor_.numel()) {}

Target Target::to(torch::Device device) const { return {to_device(tensor_, device), count_}; }

torch::Tensor new_tensor(at::IntArrayRef sizes, torch::Dtype type) {
  return at::empty(sizes, at::TensorOptions(type).pinned_memory(some_go_to_gpus));
}

Batch Batch::to(torch::Device device) const {
  std::optional<Split> split;
  if (recording::enabled()) {
    record_device(device);
    if (const auto samples = fetched_in(*this); !samples.empty()) {
      std::memcpy(&split.emplace(), samples.data(), sizeof(Split));
    }
  }
  Batch there{input.to(device), target.to(device)};
  phases::taken(device, split);
  return there;
}

}  // namespace tasks
