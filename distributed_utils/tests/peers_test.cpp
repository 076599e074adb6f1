#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "distributed_utils/distributed_utils.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// The ranks that are missing, as seen by one whose collective fails.
std::vector<int> lost_in_a_collective() {
  auto value = torch::ones({1});
  try {
    all_reduce(value);
  } catch (const std::exception& error) {
    return lost_peers(error, 5s);
  }
  ADD_FAILURE() << "the collective succeeded";
  return {};
}

TEST(Peers, OneThatDiedIsNamedByTheOthers) {
  ranks::run(4, [] {
    const World world = setup({.timeout = 60s});
    barrier();
    if (world.rank == 2) _exit(0);
    EXPECT_THAT(lost_in_a_collective(), ElementsAre(2));
  });
}

TEST(Peers, OneThatHangsIsNamedByTheOthers) {
  ranks::run(3, [] {
    const World world = setup({.timeout = 1500ms});
    const auto folder = ranks::shared_folder();
    const auto told = [&](int rank) { return folder / ("told" + std::to_string(rank)); };
    if (world.rank == 1) {
      std::ofstream(folder / "pid.new") << getpid();
      std::filesystem::rename(folder / "pid.new", folder / "pid");
      raise(SIGSTOP);
      _exit(0);
    }
    while (!std::filesystem::exists(folder / "pid")) std::this_thread::sleep_for(5ms);
    EXPECT_THAT(lost_in_a_collective(), ElementsAre(1));
    std::ofstream(told(world.rank)) << "";
    while (!std::filesystem::exists(told(2 - world.rank))) std::this_thread::sleep_for(5ms);
    pid_t stopped = 0;
    std::ifstream(folder / "pid") >> stopped;
    kill(stopped, SIGCONT);
  });
}

TEST(Peers, OtherErrorsHaveNothingToDoWithThem) {
  ranks::run(2, [] {
    setup();
    EXPECT_THAT(lost_peers(Error("no such file")), IsEmpty());
    barrier();
    destroy_process_group();
    EXPECT_THAT(lost_peers(Error("Connection closed by peer")), IsEmpty());
  });
}

TEST(Peers, NobodyIsMissingWhereAllHaveFailed) {
  ranks::run(2, [] {
    const World world = setup({.timeout = 1500ms});
    auto value = torch::ones({1});
    try {  // each waits for what the other does not send
      if (world.rank == 0) {
        broadcast(value, 1);
      } else {
        broadcast(value, 0);
      }
      ADD_FAILURE() << "both received what nobody sent";
    } catch (const std::exception& error) {
      EXPECT_THAT(lost_peers(error), IsEmpty());
    }
  });
}

}  // namespace
}  // namespace distributed_utils
