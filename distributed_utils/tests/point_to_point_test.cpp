#include "distributed_utils/point_to_point.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// What rank `rank` sends as its message number `number`.
Tensor message(int rank, int number = 0, std::vector<int64_t> shape = {4, 3}) {
  return torch::arange(12, torch::kDouble).view(shape) + 100 * rank + 1000 * number;
}

Tensor empty_message() { return torch::full({4, 3}, -1.0, torch::kDouble); }

int next(const World& world) { return (world.rank + 1) % world.world_size; }
int previous(const World& world) { return (world.rank + world.world_size - 1) % world.world_size; }

class PointToPoint : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, PointToPoint, testing::Values(2, 3));

TEST_P(PointToPoint, GoesAroundARing) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    for (int round = 0; round < 3; ++round) {
      Work sent = send_async(message(world.rank, round), next(world));
      const Tensor received = empty_message();
      recv(received, previous(world));
      sent.wait();
      EXPECT_TRUE(torch::equal(received, message(previous(world), round))) << round;
    }
    destroy_process_group();
  });
}

TEST_P(PointToPoint, WaitsForOneAfterTheOther) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const Tensor received = empty_message();
    if (world.rank == 0) {
      for (int rank = 1; rank < world.world_size; ++rank) {
        recv(received, rank);
        EXPECT_TRUE(torch::equal(received, message(rank)));
      }
    } else {
      send(message(world.rank), 0);
    }
    barrier();
  });
}

TEST_P(PointToPoint, MessagesArriveInTheOrderSent) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    constexpr int kMessages = 20;
    std::vector<Work> works;
    for (int i = 0; i < kMessages; ++i) {
      works.push_back(send_async(message(world.rank, i), next(world)));
    }
    std::vector<Tensor> received;
    for (int i = 0; i < kMessages; ++i) {
      received.push_back(empty_message());
      works.push_back(recv_async(received.back(), previous(world)));
    }
    while (!works.empty()) {  // in whatever order they are waited for
      works.back().wait();
      works.pop_back();
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(torch::equal(received[i], message(previous(world), i))) << i;
    }
  });
}

TEST_P(PointToPoint, MessagesOfSeveralSizesAndTypesKeepTheirOrder) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const auto make = [](int rank) {
      return std::vector<Tensor>{torch::full({1 << 18}, rank + 0.5), torch::scalar_tensor(rank),
                                 torch::full({3, 0}, rank), torch::full({5}, rank, torch::kLong),
                                 torch::full({7, 2}, rank, torch::kBFloat16)};
    };
    const auto mine = make(world.rank), wanted = make(previous(world));
    std::vector<Work> sent;
    for (const auto& tensor : mine) sent.push_back(send_async(tensor, next(world)));
    for (const auto& tensor : wanted) {
      const Tensor received = torch::zeros_like(tensor);
      recv(received, previous(world));
      EXPECT_TRUE(torch::equal(received, tensor));
    }
    for (auto& work : sent) work.wait();
  });
}

TEST_P(PointToPoint, TensorsNeedNotBeContiguous) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    Work sent = send_async(message(world.rank).t(), next(world));
    const Tensor whole = torch::full({6, 4}, -1.0, torch::kDouble);
    recv(whole.slice(0, 1, 6, 2), previous(world));  // rows 1, 3 and 5
    sent.wait();
    for (int row = 0; row < 6; ++row) {
      const Tensor wanted = row % 2 == 1 ? message(previous(world)).t()[row / 2]
                                         : torch::full({4}, -1.0, torch::kDouble);
      EXPECT_TRUE(torch::equal(whole[row], wanted)) << row;
    }
  });
}

TEST_P(PointToPoint, AParameterReceivesOutsideItsGraph) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const Tensor parameter = empty_message().requires_grad_();
    Work sent = send_async(parameter + message(world.rank), next(world));
    Work received = recv_async(parameter, previous(world));
    received.wait();
    sent.wait();
    EXPECT_TRUE(parameter.is_leaf());
    EXPECT_TRUE(torch::equal(parameter, message(previous(world)) - 1));
  });
}

// Gloo's own wait would not return from the second call.
TEST_P(PointToPoint, WaitingAgainDoesNothing) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    Work sent = send_async(message(world.rank), next(world));
    const Tensor tensor = empty_message();
    Work received = recv_async(tensor, previous(world));
    for (int i = 0; i < 3; ++i) {
      received.wait();
      sent.wait();
      EXPECT_TRUE(received.is_completed());
      EXPECT_TRUE(sent.is_completed());
    }
    Work moved = std::move(received);
    moved.wait();
    EXPECT_TRUE(torch::equal(tensor, message(previous(world))));
  });
}

TEST_P(PointToPoint, RanksOutsideTheGroupAndItselfAreErrors) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const auto text = "0 to " + std::to_string(world.world_size - 1);
    for (const int peer : {-1, world.world_size}) {
      EXPECT_THAT([&] { send(message(0), peer); },
                  ThrowsMessage<Error>(
                      HasSubstr("send to rank " + std::to_string(peer) + ": ranks of this group")));
      EXPECT_THAT([&] { recv(message(0), peer); }, ThrowsMessage<Error>(HasSubstr(text)));
    }
    EXPECT_THAT([&] { send(message(0), world.rank); },
                ThrowsMessage<Error>(HasSubstr("this rank itself")));
    EXPECT_THAT([&] { recv_async(message(0), world.rank).wait(); },
                ThrowsMessage<Error>(HasSubstr("recv from rank")));
  });
}

TEST(PointToPoint, RanksCountWithinTheGroup) {
  ranks::run(3, [] {
    const World world = setup();
    const auto pair = new_group({2, 0});
    if (!pair) return;
    if (world.rank == 2) {
      send(message(2), /*destination=*/1, *pair);  // world rank 0
      return;
    }
    const Tensor received = empty_message();
    recv(received, /*source=*/0, *pair);
    EXPECT_TRUE(torch::equal(received, message(2)));
  });
}

}  // namespace
}  // namespace distributed_utils
