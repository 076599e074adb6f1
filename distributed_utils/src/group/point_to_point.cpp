#include "distributed_utils/point_to_point.hpp"

#include <fmt/format.h>

#include <vector>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

// The same for all messages: see the header.
constexpr int kTag = 0;

/// Throws Error unless another rank of the group has this number.
void check_peer(const char* call, const char* direction, int peer, const Group& members) {
  if (peer < 0 || peer >= members->getSize()) {
    throw Error(fmt::format("{} {} rank {}: ranks of this group count from 0 to {}.", call,
                            direction, peer, members->getSize() - 1));
  }
  if (peer == members->getRank()) {
    throw Error(fmt::format(
        "{} {} rank {}: that is this rank itself. Fix: copy the tensor, or name another rank.",
        call, direction, peer));
  }
}

}  // namespace

Work send_async(const at::Tensor& tensor, int destination, const Group& group) {
  const Group members = group_or_world(group);
  check_peer("send", "to", destination, members);
  std::vector<at::Tensor> buffers = {tensor.detach().contiguous()};
  // A tensor without elements is not a message.
  if (tensor.numel() == 0) return {nullptr, buffers[0], buffers[0]};
  return {members->send(buffers, destination, kTag), buffers[0], buffers[0]};
}

void send(const at::Tensor& tensor, int destination, const Group& group) {
  send_async(tensor, destination, group).wait();
}

Work recv_async(const at::Tensor& tensor, int source, const Group& group) {
  const Group members = group_or_world(group);
  check_peer("recv", "from", source, members);
  std::vector<at::Tensor> buffers = {tensor.detach().contiguous()};
  if (tensor.numel() == 0) return {nullptr, tensor, buffers[0]};
  return {members->recv(buffers, source, kTag), tensor, buffers[0]};
}

void recv(const at::Tensor& tensor, int source, const Group& group) {
  recv_async(tensor, source, group).wait();
}

}  // namespace distributed_utils
