#pragma once
/// One parameter in its two shapes: the whole one, which the module computes with, and the shard,
/// which the optimizer changes.
#include <ATen/core/Tensor.h>

#include <string>

#include "fsdp/sharing.hpp"

namespace distributed_utils::detail {

/// Rows of a parameter of so many that each of the ranks holds, the last ones perhaps fewer:
/// torch.chunk's.
inline int64_t chunk_rows(int64_t rows, int64_t ranks) { return (rows + ranks - 1) / ranks; }

/// Elements in these rows.
inline int64_t chunk_numel(const at::Tensor& whole, int64_t ranks) {
  return whole.size(0) == 0 ? 0
                            : chunk_rows(whole.size(0), ranks) * (whole.numel() / whole.size(0));
}

/// The module's parameter stays the tensor that it was, which autograd and members of modules know;
/// its memory, padded to equal chunks, comes and goes. While it is gone, the parameter's storage is
/// a stand-in that throws words at whoever reads it.
class ShardedParameter {
 public:
  /// Cuts `whole` and frees it. chunk: flat memory of chunk_numel elements for the shard.
  ShardedParameter(std::string name, at::Tensor whole, const Sharing& sharing, at::Tensor chunk);
  /// With no chunk, the shard is the parameter's own memory and stays: for a group of one rank.
  ShardedParameter(std::string name, at::Tensor whole);

  const std::string& name() const { return name_; }
  const at::Tensor& whole() const { return whole_; }
  const at::Tensor& shard() const { return shard_; }
  const at::Tensor& chunk() const { return chunk_; }
  int64_t first_row() const { return first_; }
  bool is_trained() const { return whole_.requires_grad(); }

  /// Gives the whole parameter memory, on the current stream, with nothing in it yet.
  void allocate();
  /// That memory, padding included: [ranks, chunk_numel]. What is written there goes past autograd,
  /// which may hold views of it.
  at::Tensor landing() const;
  void release();

  bool has_whole_gradient() const { return whole_.grad().defined() || added_up_.defined(); }
  /// Adds backward()'s gradient to those kept in `type`, where it is another than the gradient's.
  void keep_gradient(at::ScalarType type);
  /// The whole gradient, with zeros if backward() has not come by; it is the parameter's no more.
  at::Tensor take_gradient();
  void drop_gradient();
  /// Adds to the shard's gradient. part: flat, of chunk_numel elements, of the shard's type.
  void add_shard_gradient(const at::Tensor& part);

 private:
  std::string name_;
  at::Tensor whole_, shard_, chunk_;
  at::Tensor padded_;      // whose storage the whole parameter uses
  c10::Storage stand_in_;  // while it is freed
  at::Tensor added_up_;    // gradients under no_sync(), if they are kept in another type
  int64_t ranks_ = 1;
  int64_t first_ = 0;
};

}  // namespace distributed_utils::detail
