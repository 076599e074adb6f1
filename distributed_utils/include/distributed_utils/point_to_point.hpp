#pragma once
/// Messages from one rank of a group to another.
///
/// Messages between two ranks arrive in the order in which they were sent. They have no tags,
/// because NCCL has none: a program that relies on tags on CPUs would get silent garbage on GPUs.
/// The receiver must pass a tensor of the same shape and type as the sender. Nothing checks that.
#include <ATen/core/Tensor.h>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/work.hpp"

namespace distributed_utils {

/// Sends the tensor, contiguous or not, to rank `destination` (counted within the group). Returns
/// once the tensor may change, possibly only after the receiver has taken it. If two ranks send to
/// each other before they receive, both may wait forever. Use send_async there. Throws Error for a
/// rank outside the group and for this rank itself.
void send(const at::Tensor& tensor, int destination, const Group& group = {});
[[nodiscard]] Work send_async(const at::Tensor& tensor, int destination, const Group& group = {});

/// The tensor, contiguous or not, becomes what rank `source` (counted within the group) sent.
/// Throws Error as send() does.
void recv(const at::Tensor& tensor, int source, const Group& group = {});
[[nodiscard]] Work recv_async(const at::Tensor& tensor, int source, const Group& group = {});

}  // namespace distributed_utils
