#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "distributed_utils/distributed_utils.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// The ranks that are missing, as seen by one whose collective fails.
std::vector<int> lost_in(const std::function<void()>& collective) {
  try {
    collective();
  } catch (const std::exception& error) {
    return lost_peers(error, 5s);
  }
  ADD_FAILURE() << "the collective succeeded";
  return {};
}

std::vector<int> lost_in_a_collective() {
  return lost_in([] { all_reduce(torch::ones({1})); });
}

TEST(Peers, OneThatDiedIsNamedByTheOthers) {
  ranks::run(4, [] {
    const World world = setup({.timeout = 60s});
    barrier();
    if (world.rank == 2) _exit(0);
    EXPECT_THAT(lost_in_a_collective(), ElementsAre(2));
  });
}

// Rank 1 finds out in the world. Rank 2, which waits for rank 1 in their own group, learns of it at
// once and does not wait for its time-out.
TEST(Peers, OneThatDiedIsNamedByThoseWhoWaitInAnotherGroup) {
  ranks::run(3, [] {
    const World world = setup({.timeout = 60s});
    const auto pair = new_group({1, 2});
    barrier();
    if (world.rank == 0) _exit(0);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(lost_in([&] {
                  const auto value = torch::ones({1});
                  if (world.rank == 1) recv(value, 0);
                  if (world.rank == 2) recv(value, 0, *pair);
                }),
                ElementsAre(0));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  });
}

// Text that one rank leaves for the others, whole or not at all.
void tell(const std::string& name, int64_t value) {
  const auto file = ranks::shared_folder() / name;
  std::ofstream(file.string() + ".new") << value;
  std::filesystem::rename(file.string() + ".new", file);
}

int64_t told(const std::string& name) {
  const auto file = ranks::shared_folder() / name;
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(5ms);
  int64_t value = 0;
  std::ifstream(file) >> value;
  return value;
}

// Of three ranks one is stopped; the others name it, then it goes on and ends.
void expect_that_hanging_is_noticed(int hanging) {
  ranks::meet(3);  // ranks take longer to start than setup() has patience here
  const World world = setup({.timeout = 3s});
  if (world.rank == hanging) {
    tell("pid", getpid());
    raise(SIGSTOP);
    _exit(0);
  }
  const auto stopped = static_cast<pid_t>(told("pid"));
  EXPECT_THAT(lost_in_a_collective(), ElementsAre(hanging));
  tell("done" + std::to_string(world.rank), 1);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != hanging) told("done" + std::to_string(rank));
  }
  kill(stopped, SIGCONT);
}

TEST(Peers, OneThatHangsIsNamedByTheOthers) {
  ranks::run(3, [] { expect_that_hanging_is_noticed(1); });
}

// A port that is kept for us: as long as this socket lives, nobody gets it by chance, and a store
// can listen there all the same.
uint16_t reserve_port() {
  const int reserved = socket(AF_INET6, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(reserved, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(reserved, general, size), 0);
  EXPECT_EQ(getsockname(reserved, general, &size), 0);
  return ntohs(address.sin6_port);
}

TEST(Peers, TheOneThatServesTheStoreIsNamedIfItHangs) {
  ranks::run(3, [] {
    if (std::string_view(getenv("RANK")) == "0") tell("port", reserve_port());
    unsetenv("INIT_METHOD");
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", std::to_string(told("port")).c_str(), 1);
    expect_that_hanging_is_noticed(0);
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
    ranks::meet(2);
    const World world = setup({.timeout = 3s});
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
