// What becomes of groups when the process group is destroyed.
#include "distributed_utils/process_group.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "counted_groups.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/point_to_point.hpp"
#include "distributed_utils/sampler.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DestroyProcessGroup, ShutsDownEveryGroupTheLastFirst) {
  ranks::run(3, [] {
    observe(find_counted_groups);
    const World world = setup();
    new_group({0, 1, 2});  // held by nobody
    const auto pair = new_group({0, 1});
    const auto last = new_group({2, 1, 0});
    EXPECT_TRUE(counted_groups().ended.empty());
    destroy_process_group();
    if (world.rank == 2) {
      EXPECT_THAT(counted_groups().ended, ElementsAre("group3", "group1", "world"));
    } else {
      EXPECT_THAT(counted_groups().ended, ElementsAre("group3", "group2", "group1", "world"));
    }
  });
}

TEST(DestroyProcessGroup, HasThingsReleasedBeforeAnyGroupEnds) {
  ranks::run(2, [] {
    EXPECT_THAT([] { before_destroy([] {}); }, ThrowsMessage<Error>(HasSubstr("setup()")));
    observe(find_counted_groups);
    setup();
    int released = 0;
    before_destroy([&] {
      ++released;
      EXPECT_TRUE(counted_groups().ended.empty());
      EXPECT_EQ(get_world_size(), 2);
    });
    destroy_process_group();
    destroy_process_group();
    EXPECT_EQ(released, 1);
    EXPECT_THAT(counted_groups().ended, ElementsAre("world"));
  });
}

TEST(DestroyProcessGroup, WorkAfterItIsToldThatTheGroupWasLeft) {
  ranks::run(2, [] {
    EXPECT_THAT([] { DistributedSampler(4); }, ThrowsMessage<Error>(HasSubstr("setup() first")));
    setup();
    destroy_process_group();
    const auto refused = ThrowsMessage<Error>(HasSubstr("no process group"));
    EXPECT_THAT([] { DistributedSampler(4); }, refused);
    EXPECT_THAT([] { all_reduce(torch::ones({2})); }, refused);
    EXPECT_THAT([] { DistributedDataParallel(torch::nn::Linear(1, 1).ptr()); }, refused);
  });
}

TEST(DestroyProcessGroup, AGroupThatIsUsedAfterItIsAnError) {
  ranks::run(2, [] {
    const World world = setup();
    const Group old_world = world_group(), pair = *new_group({0, 1});
    const auto tensor = torch::ones({2});
    destroy_process_group();
    const auto expect_refused = [&] {
      const auto refused = ThrowsMessage<Error>(HasSubstr("has shut down the group 'group1'"));
      EXPECT_THAT([&] { all_reduce(tensor, ReduceOp::SUM, pair); }, refused);
      EXPECT_THAT([&] { send(tensor, 1 - world.rank, pair); }, refused);
      EXPECT_THAT([&] { barrier(pair); }, refused);
      EXPECT_THAT([&] { get_rank(pair); }, refused);
      EXPECT_THAT([&] { DistributedSampler(4, {.group = pair}); }, refused);
      EXPECT_THAT([&] { DistributedDataParallel(torch::nn::Linear(1, 1).ptr(), {.group = pair}); },
                  refused);
      EXPECT_THAT([&] { barrier(old_world); }, ThrowsMessage<Error>(HasSubstr("'world'")));
    };
    expect_refused();
    setenv("INIT_METHOD", ("file://" + (ranks::shared_folder() / "again").string()).c_str(), 1);
    setup();
    expect_refused();  // a new world does not revive them
    const auto again = new_group({0, 1});
    all_reduce(tensor, ReduceOp::SUM, *again);
    EXPECT_EQ(tensor[0].item<float>(), 2);
    destroy_process_group();
  });
}

}  // namespace
}  // namespace distributed_utils
