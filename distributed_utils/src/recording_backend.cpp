#include "recording_backend.hpp"

#include <execinfo.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "distributed_utils/recording.hpp"
#include "waited_work.hpp"

namespace distributed_utils::detail {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using c10d::OpType;

constexpr int kMaxFrames = 64;
constexpr uint8_t kNoReduceOp = 255;

template <typename T>
void append(std::vector<std::byte>& to, const T* values, size_t count) {
  const auto bytes = std::as_bytes(std::span(values, count));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// What distinguishes one collective from another.
struct Call {
  OpType type;
  std::optional<c10d::ReduceOp> op = {};
  int64_t root = -1;
};

/// Null for a work that has none; c10 says so by an exception.
c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const c10::Error&) {
    return nullptr;
  }
}

class RecordingBackend : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<c10d::Backend> backend, std::shared_ptr<RecordedGroup> group)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        group_(std::move(group)) {
    if (backend_->getBoundDeviceId()) setBoundDeviceId(backend_->getBoundDeviceId());
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return follow(issue({OpType::BROADCAST, {}, options.rootRank}, tensors),
                  [&] { return backend_->broadcast(tensors, options); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return follow(issue({OpType::ALLREDUCE, options.reduceOp}, tensors),
                  [&] { return backend_->allreduce(tensors, options); });
  }
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return follow(issue({OpType::_ALLREDUCE_SPARSE, options.reduceOp}, tensors),
                  [&] { return backend_->allreduce_sparse(tensors, options); });
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return follow(issue({OpType::ALLREDUCE_COALESCED, options.reduceOp}, tensors),
                  [&] { return backend_->allreduce_coalesced(tensors, options); });
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return follow(issue({OpType::REDUCE, options.reduceOp, options.rootRank}, tensors),
                  [&] { return backend_->reduce(tensors, options); });
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return follow(issue({OpType::ALLGATHER}, inputs),
                  [&] { return backend_->allgather(outputs, inputs, options); });
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return follow(issue({OpType::_ALLGATHER_BASE}, {input}),
                  [&] { return backend_->_allgather_base(output, input, options); });
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return follow(issue({OpType::ALLGATHER_COALESCED}, inputs),
                  [&] { return backend_->allgather_coalesced(outputs, inputs, options); });
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return follow(issue({OpType::ALLGATHER_COALESCED}, inputs), [&] {
      return backend_->allgather_into_tensor_coalesced(outputs, inputs, options);
    });
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    return follow(issue({OpType::GATHER, {}, options.rootRank}, inputs),
                  [&] { return backend_->gather(outputs, inputs, options); });
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    return follow(issue({OpType::SCATTER, {}, options.rootRank}, outputs),
                  [&] { return backend_->scatter(outputs, inputs, options); });
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return follow(issue({OpType::REDUCE_SCATTER, options.reduceOp}, outputs),
                  [&] { return backend_->reduce_scatter(outputs, inputs, options); });
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return follow(issue({OpType::_REDUCE_SCATTER_BASE, options.reduceOp}, {input}),
                  [&] { return backend_->_reduce_scatter_base(output, input, options); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return follow(issue({OpType::_REDUCE_SCATTER_BASE, options.reduceOp}, inputs), [&] {
      return backend_->reduce_scatter_tensor_coalesced(outputs, inputs, options);
    });
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    return follow(issue({OpType::ALLTOALL_BASE}, {input}), [&] {
      return backend_->alltoall_base(output, input, output_splits, input_splits, options);
    });
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    return follow(issue({OpType::ALLTOALL}, inputs),
                  [&] { return backend_->alltoall(outputs, inputs, options); });
  }
  WorkPtr send(Tensors& tensors, int destination, int tag) override {
    return follow(issue({OpType::SEND, {}, destination}, tensors),
                  [&] { return backend_->send(tensors, destination, tag); });
  }
  WorkPtr recv(Tensors& tensors, int source, int tag) override {
    return follow(issue({OpType::RECV, {}, source}, tensors),
                  [&] { return backend_->recv(tensors, source, tag); });
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return follow(issue({OpType::RECVANYSOURCE}, tensors),
                  [&] { return backend_->recvAnysource(tensors, tag); });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return follow(issue({OpType::BARRIER}, {}), [&] { return backend_->barrier(options); });
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) override {
    issue({OpType::BARRIER}, {});
    backend_->monitoredBarrier(options, wait_all);
  }

  // Nothing to record: passed on.
  const std::string getBackendName() const override { return backend_->getBackendName(); }
  c10::intrusive_ptr<Options> getBackendOptions() override { return backend_->getBackendOptions(); }
  bool supportsSplitting() const override { return backend_->supportsSplitting(); }
  bool supportsCoalescing() const override { return backend_->supportsCoalescing(); }
  bool supportsTimeEstimation() const override { return backend_->supportsTimeEstimation(); }
  bool supportsShrinking() const override { return backend_->supportsShrinking(); }
  void setTimeout(std::chrono::milliseconds timeout) override { backend_->setTimeout(timeout); }
  void startCoalescing() override { backend_->startCoalescing(); }
  WorkPtr endCoalescing() override { return backend_->endCoalescing(); }
  void setSequenceNumberForGroup() override { backend_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return backend_->getSequenceNumberForGroup(); }
  void registerOnCompletionHook(
      std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override {
    backend_->registerOnCompletionHook(std::move(hook));
  }
  void waitForPendingWorks() override { backend_->waitForPendingWorks(); }
  void enableCollectivesTiming() override { backend_->enableCollectivesTiming(); }
  void setGroupUid(const std::string& uid) override {
    Backend::setGroupUid(uid);
    backend_->setGroupUid(uid);
  }
  void eagerConnectSingleDevice(at::Device device) override {
    backend_->eagerConnectSingleDevice(device);
  }
  c10d::ErrorType getError() override { return backend_->getError(); }
  std::shared_ptr<c10::Allocator> getMemAllocator() override { return backend_->getMemAllocator(); }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    return backend_->allocateTensor(size, options);
  }
  bool supportsTensorAlloc(c10::DeviceIndex device) override {
    return backend_->supportsTensorAlloc(device);
  }
  void abort() override { backend_->abort(); }
  void shutdown() override { backend_->shutdown(); }

 private:
  /// Writes the record of a call about to be made, and returns its number in the group.
  uint64_t issue(const Call& call, const Tensors& tensors) {
    std::array<void*, kMaxFrames> frames = {};
    const int depth = backtrace(frames.data(), kMaxFrames);
    recording::CollectiveRecord record = {
        .sequence = group_->next_sequence.fetch_add(1),
        .group = group_->number,
        .op_type = static_cast<uint8_t>(call.type),
        .reduce_op = call.op ? static_cast<uint8_t>(call.op->op_) : kNoReduceOp,
        .scalar_type = -1,
        .device = 0,
        .root = static_cast<int32_t>(call.root),
        .frames = static_cast<uint32_t>(depth),
        .elements = 0,
    };
    for (const at::Tensor& tensor : tensors) {
      record.scalar_type = static_cast<int8_t>(tensor.scalar_type());
      record.device = static_cast<uint8_t>(tensor.device().type());
      record.elements += static_cast<uint64_t>(tensor.numel());
    }
    std::vector<std::byte> payload;
    append(payload, &record, 1);
    append(payload, frames.data(), static_cast<size_t>(depth));
    recording::record(recording::Kind::collective, payload);
    return record.sequence;
  }

  /// Makes the call and records its end. Through the future rather than wait(), because the Reducer
  /// only ever takes futures. (NCCL's futures are done once the kernel is queued, not once it ran.)
  template <typename Invoke>
  WorkPtr follow(uint64_t sequence, Invoke invoke) {
    WorkPtr work = invoke();
    if (!work) return work;  // within a coalesced block
    const auto future = future_of(*work);
    if (!future) return c10::make_intrusive<WaitedWork>(std::move(work), group_->number, sequence);
    future->addCallback(
        [sequence, number = group_->number](c10::ivalue::Future& done) {
          record_completed(number, sequence, done.hasError());
        },
        /*uses_future=*/false);
    return work;
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::shared_ptr<RecordedGroup> group_;
};

}  // namespace

std::shared_ptr<RecordedGroup> record_group(const std::string& name, const std::vector<int>& ranks,
                                            int rank) {
  if (!recording::enabled()) return nullptr;
  static std::atomic<uint32_t> next_number = 0;
  auto group = std::make_shared<RecordedGroup>(next_number.fetch_add(1));
  const recording::GroupRecord record = {
      .group = group->number,
      .rank = static_cast<uint32_t>(rank),
      .size = static_cast<uint32_t>(ranks.size()),
      .name_size = static_cast<uint32_t>(name.size()),
  };
  std::vector<std::byte> payload;
  append(payload, &record, 1);
  append(payload, name.data(), name.size());
  append(payload, ranks.data(), ranks.size());
  recording::record(recording::Kind::group, payload);
  return group;
}

c10::intrusive_ptr<c10d::Backend> wrap_recorded(c10::intrusive_ptr<c10d::Backend> backend,
                                                std::shared_ptr<RecordedGroup> group) {
  if (!group) return backend;
  return c10::make_intrusive<RecordingBackend>(std::move(backend), std::move(group));
}

}  // namespace distributed_utils::detail
