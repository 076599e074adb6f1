#include "distributed_utils/buffers.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "either_reducer.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using torch::Tensor;

/// Buffers of several types, one of them shared and one not contiguous.
struct ManyBuffers : torch::nn::Module {
  explicit ManyBuffers(int rank) {
    const double value = rank + 1;
    add("half", torch::full({2}, value, torch::kHalf));
    add("wide", torch::full({2, 3}, value, torch::kDouble).t());
    add("single", torch::full({}, 10 * value));
    add("count", torch::full({}, rank + 7, torch::kLong));
    add("flag", torch::full({2}, rank == 0, torch::kBool));
    add("empty", torch::zeros({0}));
    add("complex", torch::complex(torch::full({1}, value), torch::full({1}, -value)));
    add("again", named_buffers()["single"]);
    register_buffer("none", Tensor());
    register_parameter("weight", torch::full({2}, value));
  }
  void add(const std::string& name, const Tensor& tensor) { register_buffer(name, tensor); }
};

class SynchronizeBuffers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, SynchronizeBuffers, testing::Values(1, 2, 3));

TEST_P(SynchronizeBuffers, GivesAllRanksTheFirstsOrTheMean) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    for (const auto how : {Buffers::first_rank, Buffers::mean}) {
      const ManyBuffers net(world.rank);
      synchronize_buffers(net, how);
      const auto buffers = net.named_buffers();
      const double value = how == Buffers::mean ? (world.world_size + 1) / 2.0 : 1;
      EXPECT_TRUE(torch::equal(buffers["half"], torch::full({2}, value, torch::kHalf)));
      EXPECT_TRUE(torch::equal(buffers["wide"], torch::full({3, 2}, value, torch::kDouble)));
      EXPECT_EQ(buffers["single"].item<double>(), 10 * value) << "once, though it has two names";
      EXPECT_EQ(buffers["count"].item<int64_t>(), 7);
      EXPECT_TRUE(torch::equal(buffers["flag"], torch::full({2}, true)));
      EXPECT_EQ(torch::real(buffers["complex"])[0].item<double>(), value);
      EXPECT_EQ(torch::imag(buffers["complex"])[0].item<double>(), -value);
      EXPECT_EQ(net.named_parameters()["weight"][0].item<double>(), world.rank + 1);
    }
  });
}

TEST(SynchronizeBuffers, WithinAGroupAndWithoutAny) {
  const ManyBuffers serial(4);
  synchronize_buffers(serial, Buffers::mean);
  EXPECT_EQ(serial.named_buffers()["single"].item<double>(), 50);
  ranks::run(3, [] {
    const World world = setup();
    const auto group = new_group({2, 1});
    const ManyBuffers net(world.rank);
    if (group) synchronize_buffers(net, Buffers::first_rank, *group);
    EXPECT_EQ(net.named_buffers()["count"].item<int64_t>(), world.rank == 0 ? 7 : 9);
  });
}

// What oracle/batch_norm.py does with Python's DistributedDataParallel.
Tensor rows(int rank, int step) {
  return (torch::arange(15, torch::kDouble).view({5, 3}) * (1 + 0.1 * rank) * (step + 1)).sin() +
         rank;
}

struct BatchNormNet : torch::nn::Module {
  BatchNormNet() {
    to(torch::kDouble);
    norm->num_batches_tracked = norm->num_batches_tracked.to(torch::kLong);
    const torch::NoGradGuard no_grad;
    linear->weight.copy_((torch::arange(6, torch::kDouble).view({2, 3}) + 1).cos());
  }
  Tensor forward(const Tensor& input) { return norm->forward(linear->forward(input)); }

  torch::nn::Linear linear =
      register_module("linear", torch::nn::Linear(torch::nn::LinearOptions(3, 2).bias(false)));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(2));
};

Tensor evaluated(BatchNormNet& net) {
  const torch::NoGradGuard no_grad;
  net.eval();
  return net.forward(rows(0, 99));
}

void expect_near(const Tensor& ours, const nlohmann::json& python, const std::string& where) {
  auto values = python;
  if (!values.front().is_number()) {
    values = nlohmann::json::array();
    for (const auto& row : python) values.insert(values.end(), row.begin(), row.end());
  }
  const auto expected = torch::tensor(values.get<std::vector<double>>(), torch::kDouble);
  EXPECT_TRUE(torch::allclose(ours.flatten(), expected, 1e-12, 1e-12)) << where;
}

void train_as_python(const std::vector<std::string>& kinds, const nlohmann::json& python) {
  const World world = setup();
  const auto& expected = python.at(world.rank);
  const auto net = std::make_shared<BatchNormNet>();
  const auto model = DistributedDataParallel(net, either());
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (int step = 0; step < static_cast<int>(kinds.size()); ++step) {
    const Tensor input = rows(world.rank, step);
    if (kinds[step] == "evaluate") {
      const torch::NoGradGuard no_grad;
      model->eval();
      model->forward(input);
      model->train();
    } else if (kinds[step] == "no_sync") {
      const auto no_sync = model->no_sync();
      model->forward(input).pow(3).mean().backward();
    } else {
      model->forward(input).pow(3).mean().backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    const auto& then = expected.at("steps").at(step);
    const std::string where = "after step " + std::to_string(step) + ", " + kinds[step];
    expect_near(net->norm->running_mean, then.at("mean"), "mean " + where);
    expect_near(net->norm->running_var, then.at("var"), "variance " + where);
    EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), then.at("batches").get<int>());
  }
  expect_near(evaluated(*net), expected.at("own"), "before the buffers are the same");
  synchronize_buffers(*model);
  expect_near(evaluated(*net), expected.at("common"), "when they are the same");
  EXPECT_EQ(world.rank == 0, expected.at("own") == expected.at("common"));
}

class BatchNormUnderDdp : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, BatchNormUnderDdp, kEitherReducer, NameOfReducer());

TEST_P(BatchNormUnderDdp, AgreesWithPythons) {
  const std::vector<std::string> kinds = {"step",    "step", "evaluate", "step", "no_sync",
                                          "no_sync", "step", "evaluate", "step", "step"};
  static const auto python = oracle::json("batch_norm.py", kinds);  // once for both reducers
  if (!python) GTEST_SKIP() << oracle::kMissing;
  ranks::run(2, [&] { train_as_python(kinds, *python); });
}

}  // namespace
}  // namespace distributed_utils
