#include "distributed_utils/collectives.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

/// The same memory without autograd, which has no say in communication.
at::Tensor contiguous_view_or_copy(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    throw Error(
        "A collective got an undefined tensor. A gradient is undefined until backward() has "
        "computed it. Fix: call the collective later, or leave this tensor out on all ranks.");
  }
  return tensor.detach().contiguous();
}

void check_op(const char* collective, const at::Tensor& tensor, const ReduceOp& op) {
  if (op == ReduceOp::AVG && tensor.defined() && !tensor.is_floating_point() &&
      !tensor.is_complex()) {
    throw Error(fmt::format(
        "{}: AVG of {} would have to round. Fix: convert to floating point, or use SUM.",
        collective, c10::toString(tensor.scalar_type())));
  }
}

/// Throws Error unless a rank of the group has this number.
void check_rank(const char* collective, const char* direction, int rank, const Group& members) {
  if (rank < 0 || rank >= members->getSize()) {
    throw Error(fmt::format("{} {} rank {}: ranks of this group count from 0 to {}.", collective,
                            direction, rank, members->getSize() - 1));
  }
}

std::vector<int64_t> gathered_shape(const at::Tensor& tensor, const Group& group) {
  std::vector<int64_t> shape = {group->getSize()};
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  return shape;
}

std::vector<int64_t> scattered_shape(const at::Tensor& tensor, const Group& group) {
  const int64_t ranks = group->getSize();
  if (tensor.dim() == 0 || tensor.size(0) % ranks != 0) {
    throw Error(
        fmt::format("reduce_scatter: a tensor of shape {} cannot be split among {} ranks along "
                    "its first dimension.",
                    c10::str(tensor.sizes()), ranks));
  }
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] /= ranks;
  return shape;
}

/// Throws Error unless the caller's result can take what the collective gives.
void check_result(const char* collective, const at::Tensor& result, const at::Tensor& tensor,
                  const std::vector<int64_t>& shape, const Group& group) {
  if (result.sizes() == shape) return;
  throw Error(fmt::format("{}: the result of {} ranks' tensors of shape {} has shape {}, not {}.",
                          collective, group->getSize(), c10::str(tensor.sizes()),
                          c10::str(c10::IntArrayRef(shape)), c10::str(result.sizes())));
}

}  // namespace

Work all_reduce_async(const at::Tensor& tensor, ReduceOp op, const Group& group) {
  const Group members = group_or_world(group);
  check_op("all_reduce", tensor, op);
  std::vector<at::Tensor> buffers = {contiguous_view_or_copy(tensor)};
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  return {members->allreduce(buffers, options), tensor, buffers[0]};
}

void all_reduce(const at::Tensor& tensor, ReduceOp op, const Group& group) {
  all_reduce_async(tensor, op, group).wait();
}

Work reduce_async(const at::Tensor& tensor, int destination, ReduceOp op, const Group& group) {
  const Group members = group_or_world(group);
  check_op("reduce", tensor, op);
  check_rank("reduce", "to", destination, members);
  // Gloo leaves halves of sums in the buffers of other ranks: their tensors never see them.
  const bool here = members->getRank() == destination;
  std::vector<at::Tensor> buffers = {here ? contiguous_view_or_copy(tensor)
                                          : tensor.detach().clone(at::MemoryFormat::Contiguous)};
  c10d::ReduceOptions options;
  options.reduceOp = op;
  options.rootRank = destination;
  return {members->reduce(buffers, options), here ? tensor : buffers[0], buffers[0]};
}

void reduce(const at::Tensor& tensor, int destination, ReduceOp op, const Group& group) {
  reduce_async(tensor, destination, op, group).wait();
}

Work broadcast_async(const at::Tensor& tensor, int source, const Group& group) {
  const Group members = group_or_world(group);
  check_rank("broadcast", "from", source, members);
  std::vector<at::Tensor> buffers = {contiguous_view_or_copy(tensor)};
  c10d::BroadcastOptions options;
  options.rootRank = source;
  return {members->broadcast(buffers, options), tensor, buffers[0]};
}

void broadcast(const at::Tensor& tensor, int source, const Group& group) {
  broadcast_async(tensor, source, group).wait();
}

Work all_gather_async(const at::Tensor& result, const at::Tensor& tensor, const Group& group) {
  const Group members = group_or_world(group);
  check_result("all_gather", result, tensor, gathered_shape(tensor, members), members);
  // Flat, because Gloo cuts the output along its first dimension, which a scalar does not have.
  at::Tensor input = contiguous_view_or_copy(tensor).flatten();
  at::Tensor output = contiguous_view_or_copy(result);
  at::Tensor flat = output.flatten();
  return {members->_allgather_base(flat, input), result, output};
}

at::Tensor all_gather(const at::Tensor& tensor, const Group& group) {
  const Group members = group_or_world(group);
  at::Tensor result = at::empty(gathered_shape(tensor, members), tensor.options());
  all_gather_async(result, tensor, members).wait();
  return result;
}

Work reduce_scatter_async(const at::Tensor& result, const at::Tensor& tensor, ReduceOp op,
                          const Group& group) {
  const Group members = group_or_world(group);
  check_op("reduce_scatter", tensor, op);
  check_result("reduce_scatter", result, tensor, scattered_shape(tensor, members), members);
  at::Tensor input = contiguous_view_or_copy(tensor);
  at::Tensor output = contiguous_view_or_copy(result);
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  return {members->_reduce_scatter_base(output, input, options), result, output};
}

at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op, const Group& group) {
  const Group members = group_or_world(group);
  const at::Tensor result = at::empty(scattered_shape(tensor, members), tensor.options());
  reduce_scatter_async(result, tensor, op, members).wait();
  return result;
}

void barrier(const Group& group) {
  const Group members = group_or_world(group);
  c10d::BarrierOptions options;
  options.device = members->getBoundDeviceId();
  members->barrier(options)->wait();
}

}  // namespace distributed_utils
