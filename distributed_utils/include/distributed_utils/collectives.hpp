#pragma once
/// Collectives: operations that all ranks of a group do together, such as all_reduce. Every rank
/// must call the same ones in the same order, with tensors of the same shape and type. Each has an
/// _async form, which returns at once.
#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/work.hpp"

namespace distributed_utils {

/// ReduceOp::SUM, AVG, MIN, MAX and more.
using c10d::ReduceOp;

/// Every rank's tensor becomes the reduction of all of them, in place, contiguous or not. AVG needs
/// floating point; throws Error otherwise.
void all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::SUM, const Group& group = {});
[[nodiscard]] Work all_reduce_async(const at::Tensor& tensor, ReduceOp op = ReduceOp::SUM,
                                    const Group& group = {});

/// The tensor of rank `destination` (counted within the group) becomes the reduction of all of
/// them, in place, contiguous or not. Tensors of other ranks do not change, as in NCCL. AVG needs
/// floating point. Throws Error otherwise, and for a rank outside the group.
void reduce(const at::Tensor& tensor, int destination, ReduceOp op = ReduceOp::SUM,
            const Group& group = {});
[[nodiscard]] Work reduce_async(const at::Tensor& tensor, int destination,
                                ReduceOp op = ReduceOp::SUM, const Group& group = {});
/// An op would count as the destination that has its number.
void reduce(const at::Tensor& tensor, ReduceOp::RedOpType op) = delete;
Work reduce_async(const at::Tensor& tensor, ReduceOp::RedOpType op) = delete;

/// Every rank's tensor becomes that of rank `source` (counted within the group), in place.
void broadcast(const at::Tensor& tensor, int source, const Group& group = {});
[[nodiscard]] Work broadcast_async(const at::Tensor& tensor, int source, const Group& group = {});

/// The tensors of all ranks stacked in rank order: shape [world_size, ...tensor's shape].
at::Tensor all_gather(const at::Tensor& tensor, const Group& group = {});
/// The same into `result`, of that shape and the tensor's type, contiguous or not.
[[nodiscard]] Work all_gather_async(const at::Tensor& result, const at::Tensor& tensor,
                                    const Group& group = {});

/// Reduces [world_size * n, ...] over all ranks and returns this rank's part [n, ...]. Throws Error
/// if the first dimension cannot be divided by the number of ranks.
at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op = ReduceOp::SUM,
                          const Group& group = {});
/// The same into `result`, of this part's shape and the tensor's type, contiguous or not.
[[nodiscard]] Work reduce_scatter_async(const at::Tensor& result, const at::Tensor& tensor,
                                        ReduceOp op = ReduceOp::SUM, const Group& group = {});

/// Returns once every rank of the group has called it.
void barrier(const Group& group = {});

}  // namespace distributed_utils
