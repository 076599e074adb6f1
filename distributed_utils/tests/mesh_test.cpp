// The world as a mesh of ranks.
#include "distributed_utils/mesh.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "counted_groups.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/point_to_point.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// The sum of 2^rank over the ranks of a group: who took part.
int64_t members_of(const Group& group, int rank) {
  const auto mask = torch::full({}, int64_t{1} << rank, torch::kLong);
  all_reduce(mask, ReduceOp::SUM, group);
  return mask.item<int64_t>();
}

int64_t mask_of(const std::vector<int>& ranks) {
  int64_t mask = 0;
  for (const int rank : ranks) mask |= int64_t{1} << rank;
  return mask;
}

TEST(DeviceMesh, TwoByTwoHasCollectivesAlongEachDimension) {
  ranks::run(4, [] {
    const World world = setup();
    const DeviceMesh mesh({.tp = 2});
    EXPECT_EQ(mesh.sizes().dp, 2);
    EXPECT_EQ(mesh.get_local_rank("tp"), world.rank % 2);
    EXPECT_EQ(mesh.get_local_rank("dp"), world.rank / 2);
    EXPECT_THAT(mesh.ranks("dp"), ElementsAre(world.rank % 2, world.rank % 2 + 2));
    for (const char* dims : {"tp", "dp", "cp", "pp", "dp-cp", "tp-pp", "tp-dp", "tp-cp-dp-pp"}) {
      const auto group = mesh.get_group(dims);
      EXPECT_EQ(members_of(group, world.rank), mask_of(mesh.ranks(dims))) << dims;
      EXPECT_EQ(mesh.size(dims), static_cast<int>(mesh.ranks(dims).size())) << dims;
      EXPECT_EQ(mesh.ranks(dims).at(mesh.get_local_rank(dims)), world.rank) << dims;
    }
    const auto received = torch::zeros({}, torch::kLong);
    Work sent = send_async(torch::full({}, world.rank, torch::kLong), 1 - world.rank % 2,
                           mesh.get_group("tp"));
    recv(received, 1 - world.rank % 2, mesh.get_group("tp"));
    sent.wait();
    EXPECT_EQ(received.item<int64_t>(), world.rank % 2 == 0 ? world.rank + 1 : world.rank - 1);
    destroy_process_group();
  });
}

// Nobody sees another one's groups, whatever their sizes.
TEST(DeviceMesh, OfSixRanksInAnotherOrder) {
  ranks::run(6, [] {
    const World world = setup();
    const DeviceMesh mesh({.pp = 3}, "pp-dp-tp-cp");
    EXPECT_EQ(mesh.get_local_rank("pp"), world.rank % 3);
    EXPECT_EQ(mesh.get_local_rank("dp"), world.rank / 3);
    for (const char* dims : {"pp", "dp", "dp-pp", "tp"}) {
      EXPECT_EQ(members_of(mesh.get_group(dims), world.rank), mask_of(mesh.ranks(dims))) << dims;
    }
    destroy_process_group();
  });
}

TEST(DeviceMesh, GroupsOfOneRankWork) {
  ranks::run(2, [] {
    const World world = setup();
    const DeviceMesh mesh({.tp = 2});
    const auto alone = mesh.get_group("dp");
    EXPECT_EQ(get_world_size(alone), 1);
    EXPECT_EQ(mesh.get_group("cp"), alone);  // one is enough
    EXPECT_EQ(mesh.get_group("tp"), world_group());
    const auto own = torch::full({3}, world.rank + 1.0);
    all_reduce(own, ReduceOp::SUM, alone);
    broadcast(own, 0, alone);
    barrier(alone);
    EXPECT_TRUE(torch::equal(all_gather(own, alone), torch::full({1, 3}, world.rank + 1.0)));
    const auto linear = torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false));
    const auto model = DistributedDataParallel(linear.ptr(), {.group = alone});
    model->forward(torch::full({1, 1}, world.rank + 5.0)).sum().backward();
    EXPECT_EQ(linear->weight.grad().item<double>(), world.rank + 5);
    destroy_process_group();
  });
}

TEST(DeviceMesh, ItsGroupsAreShutDownWithTheWorld) {
  ranks::run(4, [] {
    observe(find_counted_groups);
    const World world = setup();
    const DeviceMesh mesh({.tp = 2});
    new_group({0, 1, 2, 3});
    const DeviceMesh second({.pp = 2});
    auto wanted = counted_groups().made;
    EXPECT_EQ(wanted.size(), 8U);  // world, (alone, tp, dp), group, (alone, dp, pp)
    EXPECT_EQ(counted_groups().members[2], mesh.ranks("tp"));
    EXPECT_EQ(wanted[2], "mesh1.tp." + std::to_string(world.rank / 2 * 2));
    std::ranges::reverse(wanted);
    destroy_process_group();
    EXPECT_EQ(counted_groups().ended, wanted);
    EXPECT_THAT([&] { barrier(mesh.get_group("dp")); },
                ThrowsMessage<Error>(HasSubstr("mesh1.dp")));
  });
}

TEST(DeviceMesh, RefusesWhatIsNoMesh) {
  EXPECT_THAT([] { DeviceMesh({.tp = 2}); }, ThrowsMessage<Error>(HasSubstr("setup()")));
  ranks::run(3, [] {
    setup();
    EXPECT_THAT([] { DeviceMesh({.tp = 2}); },
                ThrowsMessage<Error>(HasSubstr("3 ranks cannot be arranged")));
    EXPECT_THAT([] { DeviceMesh({.tp = 3}, "cp-dp-pp"); },
                ThrowsMessage<Error>(HasSubstr("leaves out tp")));
    EXPECT_THAT([] { DeviceMesh({}, "dp-dp"); }, ThrowsMessage<Error>(HasSubstr("twice")));
    const DeviceMesh mesh({});
    EXPECT_THAT([&] { mesh.get_group("ep"); }, ThrowsMessage<Error>(HasSubstr("'ep'")));
    EXPECT_THAT([&] { mesh.get_local_rank("tp,dp"); }, ThrowsMessage<Error>(HasSubstr("'tp,dp'")));
    EXPECT_THAT([&] { mesh.size("dp-dp"); }, ThrowsMessage<Error>(HasSubstr("twice")));
    barrier();
  });
}

}  // namespace
}  // namespace distributed_utils
