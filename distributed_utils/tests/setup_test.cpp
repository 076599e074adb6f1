#include "distributed_utils/setup.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/process_group.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Variables for a body in this very process; ranks::run gives each test a process of its own.
void set(const char* name, const char* value) { setenv(name, value, /*overwrite=*/1); }

// Else a rank that writes to one that has left dies without a word.
TEST(Setup, ABrokenPipeEndsNoRank) {
  ranks::run(1, [] {
    setup();
    ASSERT_EQ(std::raise(SIGPIPE), 0);
  });
  ranks::run(1, [] {
    static bool called = false;
    std::signal(SIGPIPE, [](int) { called = true; });
    setup();
    ASSERT_EQ(std::raise(SIGPIPE), 0);
    EXPECT_TRUE(called) << "the program's own handler stays";
  });
}

TEST(Setup, IsAWorldOfOneWithoutALauncher) {
  ranks::run(1, [] {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "INIT_METHOD"}) {
      unsetenv(name);
    }
    EXPECT_FALSE(is_initialized());
    EXPECT_EQ(get_rank(), 0);
    EXPECT_EQ(get_world_size(), 1);
    const World world = setup();
    EXPECT_TRUE(is_initialized());
    EXPECT_EQ(world.rank, 0);
    EXPECT_EQ(world.world_size, 1);
    auto value = torch::full({2}, 3.0);
    all_reduce(value);
    EXPECT_EQ(value[0].item<double>(), 3.0);
    destroy_process_group();
    EXPECT_FALSE(is_initialized());
  });
}

// Programs take the world apart by position, where nothing but the order tells rank from local
// rank.
TEST(Setup, GivesRankLocalRankWorldSizeAndDeviceInThisOrder) {
  ranks::run(3, [] {
    const int own_rank = std::atoi(std::getenv("RANK"));
    set("LOCAL_RANK", own_rank == 1 ? "1" : "0");  // two nodes
    set("LOCAL_WORLD_SIZE", own_rank == 2 ? "1" : "2");
    set("GLOO_SOCKET_IFNAME", "lo");
    const auto [rank, local_rank, world_size, device] = setup({.device = c10::Device(c10::kCPU)});
    EXPECT_EQ(rank, own_rank);
    EXPECT_EQ(local_rank, own_rank % 2);
    EXPECT_EQ(world_size, 3);
    EXPECT_EQ(device, c10::Device(c10::kCPU));
  });
}

TEST(Setup, RanksFindEachOtherThroughAFile) {
  ranks::run(3, [] {
    const World world = setup({.device = c10::Device(c10::kCPU)});
    EXPECT_EQ(world.rank, std::atoi(std::getenv("RANK")));
    EXPECT_EQ(world.world_size, 3);
    EXPECT_EQ(world.device, c10::Device(c10::kCPU));
    auto value = torch::full({}, static_cast<double>(world.rank));
    all_reduce(value);
    EXPECT_EQ(value.item<double>(), 3.0);
    destroy_process_group();
  });
}

TEST(Setup, RanksFindEachOtherThroughMasterAddrAndPort) {
  ranks::run(2, [] {
    // Rank 0 lets the kernel choose a free port and tells it through a file, so that no test
    // depends on a port being free; torchrun does the same for its store.
    const auto file = ranks::shared_folder() / "port";
    const int rank = std::atoi(std::getenv("RANK"));
    unsetenv("INIT_METHOD");
    set("MASTER_ADDR", "127.0.0.1");
    set("TORCHELASTIC_USE_AGENT_STORE", "True");
    c10::intrusive_ptr<c10d::TCPStore> agent;
    if (rank == 0) {
      c10d::TCPStoreOptions options;
      options.port = 0;
      options.isServer = true;
      options.waitWorkers = false;
      agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
      std::ofstream(file.string() + ".new") << agent->getPort();
      std::filesystem::rename(file.string() + ".new", file);
    }
    while (!std::filesystem::exists(file))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::string port;
    std::ifstream(file) >> port;
    set("MASTER_PORT", port.c_str());
    EXPECT_EQ(setup().rank, rank);
    barrier();
    // A restarted worker group meets the same agent, but none of the keys of the first attempt.
    destroy_process_group();
    set("TORCHELASTIC_RESTART_COUNT", "1");
    EXPECT_EQ(setup().rank, rank);
    barrier();
    destroy_process_group();
    ranks::meet(2);  // the agent outlives the workers
  });
}

TEST(Setup, LeavesRandomGeneratorsAlone) {
  ranks::run(2, [] {
    torch::manual_seed(42);
    const auto expected = torch::rand({4});
    torch::manual_seed(42);
    setup();
    EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
    destroy_process_group();
  });
}

// Whoever is through first leaves at once, many times, while others still connect.
TEST(Setup, OneThatLeavesAtOnceCutsNobodyOff) {
  ranks::run(3, [] {
    setup();
    for (int i = 0; i < 40; ++i) new_group({0, 1, 2});
    destroy_process_group();
  });
}

TEST(Setup, RefusesASecondCall) {
  ranks::run(1, [] {
    setup();
    EXPECT_THAT([] { setup(); }, ThrowsMessage<Error>(HasSubstr("twice")));
  });
}

TEST(Setup, RefusesWhatItCannotDo) {
  ranks::run(1, [] {
    EXPECT_THAT([] { setup({.backend = "mpi"}); }, ThrowsMessage<Error>(HasSubstr("'mpi'")));
    EXPECT_THAT([] { setup({.backend = "nccl", .device = c10::Device(c10::kCPU)}); },
                ThrowsMessage<Error>(HasSubstr("gloo")));
    EXPECT_THAT([] { setup({.init_method = "file://relative"}); },
                ThrowsMessage<Error>(HasSubstr("absolute")));
    EXPECT_THAT([] { setup({.init_method = "tcp://nowhere"}); },
                ThrowsMessage<Error>(HasSubstr("tcp://host:port")));
    EXPECT_THAT([] { setup({.init_method = "carrier pigeon"}); },
                ThrowsMessage<Error>(HasSubstr("env://")));
    if (!torch::cuda::is_available()) {
      EXPECT_THAT([] { setup({.device = c10::Device(c10::kCUDA)}); },
                  ThrowsMessage<Error>(HasSubstr("--device cpu")));
    }
    EXPECT_FALSE(is_initialized());
  });
}

TEST(Setup, SaysThatMasterAddrIsMissing) {
  ranks::run(1, [] {
    set("WORLD_SIZE", "2");
    unsetenv("INIT_METHOD");
    EXPECT_THAT([] { setup(); }, ThrowsMessage<Error>(HasSubstr("MASTER_ADDR")));
  });
}

TEST(ProcessGroup, EndsCleanlyWithoutDestroy) {
  ranks::run(2, [] {
    setup();
    auto value = torch::ones({1});
    all_reduce(value);
  });
}

TEST(ProcessGroup, CanBeSetUpAgainAfterDestroy) {
  ranks::run(2, [] {
    for (const char* store : {"first", "second"}) {
      const World world =
          setup({.init_method = "file://" + (ranks::shared_folder() / store).string()});
      auto value = torch::ones({1});
      all_reduce(value);
      EXPECT_EQ(value.item<float>(), 2);
      EXPECT_EQ(world.world_size, 2);
      destroy_process_group();
    }
    destroy_process_group();  // a second time: nothing to do
  });
}

TEST(ProcessGroup, NewGroupsReduceAmongTheirMembersOnly) {
  ranks::run(3, [] {
    const World world = setup();
    const auto outer = new_group({2, 0});  // in this order: world rank 2 is rank 0 of it
    const auto inner = new_group({1});
    EXPECT_EQ(outer.has_value(), world.rank != 1);
    EXPECT_EQ(inner.has_value(), world.rank == 1);
    auto value = torch::full({1}, world.rank + 1.0);
    if (outer) {
      EXPECT_EQ(get_rank(*outer), world.rank == 2 ? 0 : 1);
      EXPECT_EQ(get_world_size(*outer), 2);
      all_reduce(value, ReduceOp::SUM, *outer);
      EXPECT_EQ(value.item<double>(), 4);
      auto from_two = torch::full({1}, static_cast<double>(world.rank));
      broadcast(from_two, 0, *outer);
      EXPECT_EQ(from_two.item<double>(), 2);
    } else {
      all_reduce(value, ReduceOp::SUM, *inner);
      EXPECT_EQ(value.item<double>(), 2);
    }
    EXPECT_THAT([] { new_group({}); }, ThrowsMessage<Error>(HasSubstr("new_group")));
    EXPECT_THAT([] { new_group({0, 3}); }, ThrowsMessage<Error>(HasSubstr("0 to 2")));
    EXPECT_THAT([] { new_group({1, 1}); }, ThrowsMessage<Error>(HasSubstr("different")));
    barrier();
    destroy_process_group();
  });
}

TEST(ProcessGroup, AsksForSetupFirst) {
  EXPECT_THAT([] { world_group(); }, ThrowsMessage<Error>(HasSubstr("setup()")));
  EXPECT_THAT([] { barrier(); }, ThrowsMessage<Error>(HasSubstr("setup()")));
  EXPECT_NO_THROW(destroy_process_group());
}

}  // namespace
}  // namespace distributed_utils
