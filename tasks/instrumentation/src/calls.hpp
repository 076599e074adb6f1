#pragma once
/// The records of groups and collectives, as the wrapping backend and the observer of foreign
/// groups write them: for the checker, for the monitor, or for both.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace instrumentation {

/// A group in the log. All backends of a group share one, so that its collectives are numbered in
/// the order in which the program issued them.
struct RecordedGroup {
  explicit RecordedGroup(uint32_t n) : number(n) {}

  uint32_t number;
  std::atomic<uint64_t> next_sequence = 0;
};

/// Records a new group. ranks: of the world, or none where they are not known.
std::shared_ptr<RecordedGroup> record_group(const std::string& name, int rank, int size,
                                            const std::vector<int>& ranks);

/// What distinguishes one collective from another.
struct RecordedCall {
  c10d::OpType type;
  std::optional<c10d::ReduceOp::RedOpType> op = {};
  int64_t root = -1;  ///< or the other rank of send and recv
  int tag = -1;
};

/// A call that has been recorded, by its group's number and its own there.
struct CallId {
  uint32_t group = 0;
  uint64_t sequence = 0;
};

/// Writes the record of a call about to be made.
CallId record_issued(RecordedGroup& group, const RecordedCall& call,
                     const std::vector<at::Tensor>& tensors, bool on_gpu);

/// Writes the record of a collective's end. on_gpu: nanoseconds that it ran there; 0: not known.
void record_completed(CallId call, bool failed, uint64_t on_gpu = 0);

/// Writes that the program waits for a collective, or that it has waited.
void record_waited(CallId call, uint32_t done);

/// Writes the record of a group's being shut down.
void record_shutdown(uint32_t group);

/// Has the end of `work` recorded: through its future, rather than by wait(), because the Reducer
/// only ever takes futures; on GPUs by asking it. False for a work on CPUs without a future.
bool record_end_of(const c10::intrusive_ptr<c10d::Work>& work, CallId call, bool on_gpu);

/// Whether a backend of this name does its work on the GPU; Gloo copies to the host.
bool runs_on_gpu(const std::string& backend);

}  // namespace instrumentation
