#include "tasks/batch.hpp"

#ifdef USE_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
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

#ifdef USE_CUDA
// Copies have a stream of their own, so that they run beside the kernels of the step before. The
// kernels that follow wait for them; the host waits for nothing.
class CopyStream {
 public:
  explicit CopyStream(torch::Device device)
      : kernels_(c10::cuda::getCurrentCUDAStream(device.index())),
        copies_(stream_of(kernels_.device_index())),
        guard_(copies_) {}
  ~CopyStream() {
    at::cuda::CUDAEvent copied;
    copied.record(copies_);
    copied.block(kernels_);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  torch::Tensor copy(const torch::Tensor& pinned, torch::Device device) const {
    auto there = pinned.to(device, /*non_blocking=*/true);
    there.record_stream(kernels_);  // its memory is free again when these have read it
    return there;
  }

 private:
  static c10::cuda::CUDAStream stream_of(c10::DeviceIndex device) {
    static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto found = streams.find(device);
    if (found != streams.end()) return found->second;
    return streams.emplace(device, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device))
        .first->second;
  }

  c10::cuda::CUDAStream kernels_, copies_;
  c10::cuda::CUDAStreamGuard guard_;
};
#endif

// To a GPU from pinned memory, so that nobody waits: the host goes on to fetch and enqueue what
// follows. What lies channels-last stays so.
torch::Tensor to_device(const torch::Tensor& tensor, torch::Device device) {
  if (!device.is_cuda() || !tensor.is_cpu()) return tensor.to(device);
  some_go_to_gpus = true;
  const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
#ifdef USE_CUDA
  return CopyStream(device).copy(dense.pin_memory(), device);
#else
  return dense.pin_memory().to(device, /*non_blocking=*/true);
#endif
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

Target Target::counted_by(torch::Tensor count_on_device) const {
  Target counted(tensor_, 0);
  counted.count_on_device_ = std::move(count_on_device);
  return counted;
}

Target Target::to(torch::Device device) const {
  Target there(to_device(tensor_, device), count_);
  there.count_on_device_ = count_on_device_;
  return there;
}

Target Target::clone() const {
  Target copy(tensor_.clone(), count_);
  copy.count_on_device_ = count_on_device_;
  return copy;
}

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
