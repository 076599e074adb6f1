// Step 08: gradients go to rank 0, rank 0 takes the mean and hands it to everybody.
#pragma once
#include <torch/torch.h>

#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

struct Group8 {
  std::vector<torch::Tensor> members;
  int64_t bytes = 0;
  size_t count = 0;
  torch::Tensor row;
  std::optional<Work> up;
};

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    torch::NoGradGuard no_grad;
    // All ranks but the first add zeros.
    auto give = [](torch::Tensor t) {
      torch::Tensor mine = t.detach().clone();
      if (get_rank() != 0) mine.zero_();
      all_reduce(mine);
      t.detach().copy_(mine);
    };
    for (auto& p : module.parameters()) give(p);
    for (auto& b : module.buffers()) give(b);

    const auto all = module.parameters();
    const auto most = bucket_bytes(module);
    Group8 current;
    for (auto it = all.rbegin(); it != all.rend(); it++) {
      const auto size = static_cast<int64_t>(it->nbytes());
      if (!current.members.empty() && current.bytes + size > most) {
        groups_.push_back(std::move(current));
        current = Group8();
      }
      current.members.push_back(*it);
      current.bytes += size;
    }
    groups_.push_back(std::move(current));

    for (size_t g = 0; g < groups_.size(); g++) {
      for (auto& member : groups_[g].members) {
        register_post_accumulate_grad_hook(member, [this, g](const torch::Tensor&) {
          groups_[g].count++;
          if (groups_[g].count == groups_[g].members.size()) send_up(groups_[g]);
        });
      }
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void finish() {
    std::vector<Work> down;
    for (auto& g : groups_) {
      g.up->wait();
      if (get_rank() == 0) g.row.div_(get_world_size());
      down.push_back(broadcast_async(g.row, 0));
    }
    for (size_t i = 0; i < groups_.size(); i++) {
      down[i].wait();
      int64_t at = 0;
      for (auto& member : groups_[i].members) {
        member.grad().copy_(groups_[i].row.narrow(0, at, member.numel()).view_as(member));
        at += member.numel();
      }
      groups_[i].count = 0;
      groups_[i].up.reset();
    }
  }

 private:
  void send_up(Group8& g) {
    std::vector<torch::Tensor> rows;
    for (auto& member : g.members) rows.push_back(member.grad().view(-1));
    g.row = torch::cat(rows);
    g.up = reduce_async(g.row, 0, ReduceOp::SUM);
  }

  std::vector<Group8> groups_;
};
