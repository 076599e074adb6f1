#include "recording_backend.hpp"

#include <ATen/record_function.h>

#include <utility>

#include "calls.hpp"
#include "instrumentation/pause.hpp"
#include "instrumentation/recording.hpp"
#include "observed_work.hpp"

namespace instrumentation {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using c10d::OpType;

class RecordingBackend : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<c10d::Backend> backend, std::shared_ptr<RecordedGroup> group)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        group_(std::move(group)),
        on_gpu_(runs_on_gpu(backend_->getBackendName())) {
    if (backend_->getBoundDeviceId()) setBoundDeviceId(backend_->getBoundDeviceId());
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return follow(issue({OpType::BROADCAST, {}, options.rootRank}, tensors),
                  [&] { return backend_->broadcast(tensors, options); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return follow(issue({OpType::ALLREDUCE, options.reduceOp.op_}, tensors),
                  [&] { return backend_->allreduce(tensors, options); });
  }
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return follow(issue({OpType::_ALLREDUCE_SPARSE, options.reduceOp.op_}, tensors),
                  [&] { return backend_->allreduce_sparse(tensors, options); });
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return follow(issue({OpType::ALLREDUCE_COALESCED, options.reduceOp.op_}, tensors),
                  [&] { return backend_->allreduce_coalesced(tensors, options); });
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return follow(issue({OpType::REDUCE, options.reduceOp.op_, options.rootRank}, tensors),
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
    return follow(issue({OpType::REDUCE_SCATTER, options.reduceOp.op_}, outputs),
                  [&] { return backend_->reduce_scatter(outputs, inputs, options); });
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return follow(issue({OpType::_REDUCE_SCATTER_BASE, options.reduceOp.op_}, {input}),
                  [&] { return backend_->_reduce_scatter_base(output, input, options); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return follow(issue({OpType::_REDUCE_SCATTER_BASE, options.reduceOp.op_}, inputs), [&] {
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
    return follow(issue({OpType::SEND, {}, destination, tag}, tensors),
                  [&] { return backend_->send(tensors, destination, tag); });
  }
  WorkPtr recv(Tensors& tensors, int source, int tag) override {
    return follow(issue({OpType::RECV, {}, source, tag}, tensors),
                  [&] { return backend_->recv(tensors, source, tag); });
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return follow(issue({OpType::RECVANYSOURCE, {}, -1, tag}, tensors),
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
  void shutdown() override {
    record_shutdown(group_->number);
    backend_->shutdown();
  }

 private:
  CallId issue(const RecordedCall& call, const Tensors& tensors) {
    if (Pause::lives()) return {};
    return record_issued(*group_, call, tensors, on_gpu_);
  }

  /// Makes the call and has its end recorded, and for a checker who waits for it. Gloo's own
  /// announcement of it is kept from the observer of foreign groups, which would record it again.
  template <typename Invoke>
  WorkPtr follow(CallId call, Invoke invoke) {
    const at::DisableRecordFunctionGuard unannounced;
    WorkPtr work = invoke();
    if (!work || Pause::lives()) return work;  // within a coalesced block there is none
    const bool told = record_end_of(work, call, on_gpu_);
    if (told && !recording::enabled()) return work;
    return c10::make_intrusive<ObservedWork>(std::move(work), call, told);
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::shared_ptr<RecordedGroup> group_;
  bool on_gpu_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> wrap_recorded(c10::intrusive_ptr<c10d::Backend> backend,
                                                std::shared_ptr<RecordedGroup> group) {
  return c10::make_intrusive<RecordingBackend>(std::move(backend), std::move(group));
}

bool is_recorded(const c10d::Backend& backend) {
  return dynamic_cast<const RecordingBackend*>(&backend) != nullptr;
}

}  // namespace instrumentation
