// How the groups' Gloo backend ends its collectives.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <thread>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

// Two that end at the same time would damage the heap (gloo_backend.cpp says why).
TEST(GlooBackend, NoCollectiveEndsWhileAnotherDoes) {
  ranks::run(2, [] {
    const World world = setup();
    const Group group = world_group();
    std::vector<at::Tensor> first{torch::ones({4})}, second{torch::ones({4})};
    c10::intrusive_ptr<c10d::Work> first_work, second_work;
    bool overlapped = false;
    const auto issue = [&] {
      first_work = group->allreduce(first);
      second_work = group->allreduce(second);
    };
    if (world.rank == 0) {
      issue();  // neither can end before rank 1 has come
      first_work->getFuture()->addCallback([&](c10::ivalue::Future& /*done*/) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        overlapped = second_work->isCompleted();
      });
    }
    ranks::meet(2);
    if (world.rank == 1) issue();
    second_work->wait();
    first_work->wait();
    EXPECT_FALSE(overlapped);
  });
}

}  // namespace
}  // namespace distributed_utils
