#pragma once
/// Lets a program watch what this library does, for example a checker, a monitor or a profiler.
/// Without an observer nothing is wrapped, and each of these calls costs one branch.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace distributed_utils {

/// A process group that is being made.
struct GroupDescription {
  std::string name;
  int rank = 0;  ///< of this process, in the group
  int size = 0;
  std::vector<int> ranks;  ///< of the world, in the group's order
};

/// What setup() is asked for.
struct SetupDescription {
  std::string backend;                ///< empty: none in particular
  std::optional<c10::Device> device;  ///< nothing: none in particular
};

/// A DistributedSampler that has been made.
struct SamplerDescription {
  size_t dataset_size = 0, num_replicas = 0, rank = 0;
  uint64_t seed = 0;
  bool shuffle = false, drop_last = false, pad = false;
};

/// What happens to a unit of a FullyShardedDataParallel, in this order.
enum class UnitEvent {
  gather_issued,  ///< its parameters are on their way to this rank
  gathered,       ///< forward or backward() goes on with them
  freed,
  reduce_issued,  ///< its gradients are on their way
  reduced,        ///< the shards have theirs
};

class Observer {
 public:
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// Returns a function that wraps each of the group's backends, so that the observer sees all
  /// calls. A group has two backends if CUDA tensors go to NCCL and others to Gloo.
  virtual std::function<BackendPtr(BackendPtr)> wrap_backends(const GroupDescription& group) = 0;

  /// setup() is called, and has not looked yet whether it can do what it is asked for.
  virtual void setup_called(const SetupDescription& /*asked*/) {}

  /// A sampler was made. The number that is returned names it, and all its copies, below.
  virtual uint64_t sampler_made(const SamplerDescription& /*sampler*/) { return 0; }
  virtual void epoch_set(uint64_t /*sampler*/, uint64_t /*epoch*/) {}
  /// print0() and save0() were called; here: on the rank that prints or writes.
  virtual void print0_called(bool /*here*/) {}
  virtual void save0_called(bool /*here*/) {}
  /// A forward pass of DistributedDataParallel is over, on this thread. Its collectives come from
  /// backward(), on GPUs from another thread.
  virtual void forward_ended() {}
  /// unit: its name within the model. On the thread that the event is of, as above.
  virtual void unit_event(const std::string& /*unit*/, UnitEvent /*event*/) {}
};

/// Sets the observer of this process. `find` is called each time and returns null while nobody
/// watches. An observer must outlive everything that it wrapped.
void observe(Observer* (*find)());

/// The observer of this process, or null.
Observer* observer();

}  // namespace distributed_utils
