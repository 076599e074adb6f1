#pragma once
/// Averages the gradients of a unit over all ranks and cuts them into shards.
#include <c10/core/Event.h>

#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "fsdp/sharded_parameter.hpp"

namespace distributed_utils::detail {

/// Of one unit, one after the other.
class Reduction {
 public:
  /// parameters: of one type and device. Those that are not trained stay out of it.
  Reduction(std::vector<ShardedParameter>& parameters, const Sharing& sharing);

  /// Takes the whole gradients and sends them on their way.
  void start();
  /// Returns when the shards have their gradients, or, on a device with streams, when work queued
  /// on the current stream will find them.
  void finish();

 private:
  void put_together();
  void send();
  void land();

  std::vector<ShardedParameter*> small_, large_;
  const Sharing& sharing_;
  std::vector<at::Tensor> gradients_;         // with streams until finish(): they are read there
  std::vector<at::Tensor> inputs_, outputs_;  // of the small ones together, then of the large ones
  c10::intrusive_ptr<c10d::Work> work_;
  std::optional<c10::Event> there_;  // with streams
};

}  // namespace distributed_utils::detail
