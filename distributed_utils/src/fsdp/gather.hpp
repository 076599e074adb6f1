#pragma once
/// Makes the parameters of a unit whole, and shards again.
#include <c10/core/Event.h>

#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "fsdp/sharded_parameter.hpp"

namespace distributed_utils::detail {

/// From here on a tensor travels from where it is. Smaller ones of a unit are put together: each
/// tensor costs a message, and copying a small one costs less.
constexpr size_t kAloneBytes = size_t{1} << 20;

/// Of one unit. All its small parameters share one tensor of shards, so that they need no putting
/// together before they travel.
class Gather {
 public:
  /// parameters: whole ones, of one type and device, at least one.
  Gather(const std::vector<std::pair<std::string, at::Tensor>>& parameters, const Sharing& sharing);

  std::vector<ShardedParameter>& parameters() { return parameters_; }
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }

  /// Those that do not travel alone.
  static bool is_small(const at::Tensor& whole);

  bool is_free() const { return state_ == State::free; }
  bool is_under_way() const { return state_ == State::under_way; }

  /// False if it is under way or there.
  bool start();
  /// Returns when parameters are whole, or, on a device with streams, when work queued on the
  /// current stream will find them whole. start() comes before.
  void finish();
  void free();

 private:
  enum class State { free, under_way, whole };

  std::vector<at::Tensor> sources() const;
  void land();

  const Sharing& sharing_;
  std::vector<ShardedParameter> parameters_;
  std::vector<size_t> small_, large_;
  at::Tensor together_;  // shards of the small ones, padded
  bool stays_ = false;   // the shards are the whole parameters
  State state_ = State::free;

  std::vector<at::Tensor> inputs_, outputs_;  // while under way
  c10::intrusive_ptr<c10d::Work> work_;
  std::optional<c10::Event> there_;  // with streams
};

}  // namespace distributed_utils::detail
