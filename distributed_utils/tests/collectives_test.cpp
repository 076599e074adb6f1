#include "distributed_utils/collectives.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "distributed_utils/error.hpp"
#include "distributed_utils/safetensors.hpp"
#include "distributed_utils/setup.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// What rank `rank` brings: different on every rank, of 6 rows so that 2 and 3 ranks can share
/// them.
Tensor input(int rank, torch::Dtype type = torch::kDouble) {
  return (torch::arange(6 * 5, torch::kDouble).view({6, 5}) * (rank + 1) + 7 * rank).to(type);
}

Tensor stacked(int world_size, torch::Dtype type = torch::kDouble) {
  std::vector<Tensor> all;
  for (int rank = 0; rank < world_size; ++rank) all.push_back(input(rank, type));
  return torch::stack(all);
}

Tensor reduced(int world_size, ReduceOp::RedOpType op) {
  const Tensor all = stacked(world_size);
  switch (op) {
    case ReduceOp::AVG:
      return all.mean(0);
    case ReduceOp::MIN:
      return all.amin(0);
    case ReduceOp::MAX:
      return all.amax(0);
    default:
      return all.sum(0);
  }
}

constexpr std::array kOps = {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MIN, ReduceOp::MAX};

class Collectives : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Collectives, testing::Values(1, 2, 3));

TEST_P(Collectives, AllReduce) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    for (const auto op : kOps) {
      Tensor value = input(world.rank);
      all_reduce(value, op);
      EXPECT_TRUE(torch::allclose(value, reduced(world.world_size, op), 1e-15));
    }
    Tensor whole = input(world.rank, torch::kLong);
    all_reduce(whole);
    EXPECT_TRUE(torch::equal(whole, stacked(world.world_size, torch::kLong).sum(0)));
  });
}

TEST_P(Collectives, AllReduceOfATensorThatIsNotContiguous) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const Tensor whole = input(world.rank);
    const Tensor before = whole.clone();
    all_reduce(whole.t().slice(1, 1, 6, 2));  // rows 1, 3 and 5
    const Tensor sum = reduced(world.world_size, ReduceOp::SUM);
    for (int row = 0; row < 6; ++row) {
      EXPECT_TRUE(torch::equal(whole[row], row % 2 == 1 ? sum[row] : before[row])) << row;
    }
    Tensor later = input(world.rank);
    Work work = all_reduce_async(later.t());
    work.wait();
    work.wait();  // again: nothing to do
    EXPECT_TRUE(torch::equal(later, sum));
  });
}

TEST_P(Collectives, AllReduceOfAParameterIsNoPartOfItsGraph) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    Tensor parameter = torch::full({2}, world.rank + 1.0).requires_grad_();
    all_reduce(parameter, ReduceOp::MAX);
    EXPECT_TRUE(parameter.is_leaf());
    EXPECT_EQ(parameter[0].item<double>(), world.world_size);
  });
}

TEST_P(Collectives, SeveralAtOnce) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    std::vector<Tensor> values;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      values.push_back(torch::full({100 + i}, static_cast<double>(world.rank + i)));
      works.push_back(all_reduce_async(values.back(), ReduceOp::MAX));
    }
    for (int i = 19; i >= 0; --i) {
      works[i].wait();
      EXPECT_TRUE(works[i].is_completed());
      EXPECT_EQ(values[i][0].item<double>(), world.world_size - 1 + i);
    }
  });
}

TEST_P(Collectives, ReduceToEveryRank) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    for (int destination = 0; destination < world.world_size; ++destination) {
      for (const auto op : kOps) {
        const Tensor value = input(world.rank), transposed = value.clone().t();
        reduce(value, destination, op);
        reduce(transposed, destination, op);
        const Tensor expected =
            world.rank == destination ? reduced(world.world_size, op) : input(world.rank);
        EXPECT_TRUE(torch::allclose(value, expected, 1e-15)) << destination;
        EXPECT_TRUE(torch::allclose(transposed.t(), expected, 1e-15)) << destination;
      }
    }
    EXPECT_THAT([&] { reduce(input(0), world.world_size); },
                ThrowsMessage<Error>(HasSubstr("reduce to rank")));
    EXPECT_THAT([&] { reduce(input(0), -1); }, ThrowsMessage<Error>(HasSubstr("count from 0")));
    EXPECT_THAT([] { reduce(torch::ones({2}, torch::kLong), 0, ReduceOp::AVG); },
                ThrowsMessage<Error>(HasSubstr("AVG of Long")));
    EXPECT_THAT([] { all_reduce(torch::Tensor(), ReduceOp::AVG); },
                ThrowsMessage<Error>(HasSubstr("an undefined tensor")));
  });
}

TEST_P(Collectives, ReduceUnderWay) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const int last = world.world_size - 1;
    const Tensor value = input(world.rank);
    Work work = reduce_async(value.slice(1, 0, 5, 2), last);
    work.wait();
    work.wait();  // again: nothing to do
    Tensor expected = input(world.rank);
    if (world.rank == last)
      expected.slice(1, 0, 5, 2).copy_(reduced(world.world_size, ReduceOp::SUM).slice(1, 0, 5, 2));
    EXPECT_TRUE(torch::equal(value, expected));
  });
}

TEST_P(Collectives, BroadcastFromEveryRank) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    for (int source = 0; source < world.world_size; ++source) {
      Tensor value = input(world.rank).t();  // not contiguous either
      broadcast(value, source);
      EXPECT_TRUE(torch::equal(value, input(source).t()));
    }
    EXPECT_THAT([&] { broadcast(input(0), world.world_size); },
                ThrowsMessage<Error>(HasSubstr("broadcast from rank")));
    EXPECT_THAT([&] { broadcast(input(0), -1); }, ThrowsMessage<Error>(HasSubstr("rank -1")));
  });
}

TEST_P(Collectives, AllGather) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    EXPECT_TRUE(torch::equal(all_gather(input(world.rank)), stacked(world.world_size)));
    const Tensor numbers = all_gather(torch::scalar_tensor(world.rank, torch::kLong));
    EXPECT_TRUE(torch::equal(numbers, torch::arange(world.world_size)));
  });
}

TEST_P(Collectives, AllGatherUnderWay) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const Tensor result = torch::zeros({6, 5, world.world_size}, torch::kDouble).permute({2, 0, 1});
    Work work = all_gather_async(result, input(world.rank));
    work.wait();
    EXPECT_TRUE(torch::equal(result, stacked(world.world_size)));
    EXPECT_THAT(
        [&] {
          all_gather_async(torch::zeros({6, 5}), input(world.rank)).wait();
        },
        ThrowsMessage<Error>(HasSubstr("not [6, 5]")));
  });
}

TEST_P(Collectives, ReduceScatter) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const int rows = 6 / world.world_size;
    for (const auto op : kOps) {
      const Tensor part = reduce_scatter(input(world.rank), op);
      const Tensor expected =
          reduced(world.world_size, op).slice(0, rows * world.rank, rows * (world.rank + 1));
      EXPECT_TRUE(torch::allclose(part, expected, 1e-15)) << static_cast<int>(op);
    }
    EXPECT_THAT([] { reduce_scatter(torch::tensor(1.0)); },
                ThrowsMessage<Error>(HasSubstr("first dimension")));
    if (world.world_size > 1) {
      EXPECT_THAT(
          [] {
            reduce_scatter(torch::ones({7, 2}));
          },
          ThrowsMessage<Error>(HasSubstr("[7, 2]")));
    }
  });
}

TEST_P(Collectives, ReduceScatterUnderWay) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const int rows = 6 / world.world_size;
    const Tensor whole = torch::full({5, 2 * rows}, -1.0, torch::kDouble);
    const Tensor result = whole.slice(1, 0, 2 * rows, 2).t();  // every other column
    Work work = reduce_scatter_async(result, input(world.rank).t().contiguous().t());
    work.wait();
    work.wait();  // again: nothing to do
    const Tensor sum = reduced(world.world_size, ReduceOp::SUM);
    EXPECT_TRUE(torch::equal(result, sum.slice(0, rows * world.rank, rows * (world.rank + 1))));
    EXPECT_TRUE(
        torch::equal(whole.slice(1, 1, 2 * rows, 2), torch::full({5, rows}, -1.0, torch::kDouble)));
    EXPECT_THAT(
        [&] {
          reduce_scatter_async(torch::zeros({7, 5}), input(world.rank)).wait();
        },
        ThrowsMessage<Error>(HasSubstr("has shape")));
  });
}

TEST(Collectives, BarrierWaitsForTheLast) {
  ranks::run(3, [] {
    const World world = setup();
    const auto mark = ranks::shared_folder() / "late";
    if (world.rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      std::ofstream(mark).flush();
    }
    barrier();
    EXPECT_TRUE(std::filesystem::exists(mark));
  });
}

TEST(Collectives, AverageOfWholeNumbersIsRefused) {
  ranks::run(1, [] {
    setup();
    EXPECT_THAT([] { all_reduce(torch::ones({2}, torch::kLong), ReduceOp::AVG); },
                ThrowsMessage<Error>(HasSubstr("AVG of Long")));
  });
}

// Python runs the same collectives on the same inputs at world 3 and leaves the results in a file.
TEST(Collectives, AgreeWithPythons) {
  const ranks::TemporaryFolder folder;
  const auto file = folder / "python.safetensors";
  if (!oracle::json("collectives.py", {file.string()})) GTEST_SKIP() << oracle::kMissing;
  ranks::run(3, [&] {
    const World world = setup();
    const StateDict python = load_file(file);
    const auto expected = [&](const std::string& name) {
      return python.at(name + "." + std::to_string(world.rank));
    };
    const char* const names[] = {"SUM", "AVG", "MIN", "MAX"};
    for (size_t i = 0; i < kOps.size(); ++i) {
      for (const auto type : {torch::kDouble, torch::kFloat}) {
        const std::string suffix = std::string(names[i]) + (type == torch::kFloat ? "32" : "64");
        Tensor value = input(world.rank, type);
        all_reduce(value, kOps[i]);
        EXPECT_TRUE(torch::equal(value, expected("all_reduce." + suffix))) << suffix;
      }
    }
    EXPECT_TRUE(torch::equal(all_gather(input(world.rank)), expected("all_gather")));
    Tensor value = input(world.rank);
    broadcast(value, 1);
    EXPECT_TRUE(torch::equal(value, expected("broadcast")));
    Tensor sum = input(world.rank);
    reduce(sum, 1);
    if (world.rank == 1) EXPECT_TRUE(torch::equal(sum, expected("reduce")));
  });
}

}  // namespace
}  // namespace distributed_utils
