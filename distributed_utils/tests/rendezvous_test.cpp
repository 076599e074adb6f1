#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstdlib>

#include "distributed_utils/distributed_utils.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

const auto hasty_setup = [] { setup({.timeout = std::chrono::milliseconds(300)}); };

TEST(Rendezvous, NamesTheRanksThatNeverCome) {
  ranks::run(2, [] {
    set("WORLD_SIZE", "4");
    ranks::meet(2);
    EXPECT_THAT([] { setup({.timeout = std::chrono::seconds(2)}); },
                ThrowsMessage<Error>(HasSubstr("of 4 ranks, 2, 3 did not join")));
    EXPECT_FALSE(is_initialized());
  });
}

TEST(Rendezvous, TakesItsPatienceFromTheEnvironment) {
  ranks::run(1, [] {
    set("WORLD_SIZE", "2");
    set("SETUP_TIMEOUT", "0.25");
    EXPECT_THAT([] { setup(); }, ThrowsMessage<Error>(HasSubstr("within 0.25 s")));
    set("SETUP_TIMEOUT", "soon");
    EXPECT_THAT([] { setup(); }, ThrowsMessage<Error>(HasSubstr("SETUP_TIMEOUT='soon'")));
  });
}

void look_elsewhere(const std::string& host, uint16_t port) {
  unsetenv("INIT_METHOD");
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", host);
  set("MASTER_PORT", std::to_string(port));
}

TEST(Rendezvous, SaysThatAHostIsNotKnown) {
  ranks::run(1, [] {
    look_elsewhere("no host at all", 29500);
    EXPECT_THAT(hasty_setup,
                ThrowsMessage<Error>(HasSubstr("no host at all: this node does not know")));
  });
}

// A port that the kernel chose, for a socket that listens, or for one that does not.
uint16_t bound_port(bool listening) {
  const int bound = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(bound, general, size), 0);
  if (listening) EXPECT_EQ(listen(bound, 1), 0);
  EXPECT_EQ(getsockname(bound, general, &size), 0);
  return ntohs(address.sin_port);
}

TEST(Rendezvous, SaysThatThePortIsTaken) {
  ranks::run(1, [] {
    look_elsewhere("127.0.0.1", bound_port(true));
    EXPECT_THAT(hasty_setup, ThrowsMessage<Error>(
                                 AllOf(HasSubstr("MASTER_PORT="), HasSubstr("another program"))));
  });
}

TEST(Rendezvous, SaysThatSomethingElseListensThere) {
  ranks::run(1, [] {
    look_elsewhere("127.0.0.1", bound_port(true));
    set("RANK", "1");
    EXPECT_THAT(hasty_setup, ThrowsMessage<Error>(HasSubstr("is not rank 0 of this job")));
  });
}

TEST(Rendezvous, SaysThatRankZeroDoesNotAnswer) {
  ranks::run(1, [] {
    look_elsewhere("127.0.0.1", bound_port(false));
    set("RANK", "1");
    EXPECT_THAT(hasty_setup,
                ThrowsMessage<Error>(HasSubstr("rank 0 does not answer at 127.0.0.1")));
  });
}

TEST(Rendezvous, SaysThatNoWayLeadsThere) {
  ranks::run(1, [] {
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return;
    look_elsewhere("127.0.0.1", 29500);  // not even the loopback is up
    set("RANK", "1");
    EXPECT_THAT([] { setup({.timeout = std::chrono::seconds(30)}); },
                ThrowsMessage<Error>(HasSubstr("this node has no route to 127.0.0.1")));
  });
}

}  // namespace
}  // namespace distributed_utils
