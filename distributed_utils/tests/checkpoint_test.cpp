#include "distributed_utils/checkpoint.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <limits>
#include <set>

#include "distributed_utils/error.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// A model and an optimizer with nothing to them, for tests of the rest.
struct Small {
  torch::nn::Linear model{2, 2};
  torch::optim::SGD optimizer{model->parameters(), 0.1};

  void save(const std::filesystem::path& directory, int64_t step, int keep = 2,
            const Scalars& scalars = {}) {
    const torch::NoGradGuard no_grad;
    model->weight.fill_(static_cast<double>(step));
    Checkpoints(directory, {.keep = keep}).save(step, *model, optimizer, scalars);
  }
};

std::set<std::string> names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// These run without setup(), as a serial program does.
TEST(Checkpoints, NoneIsAnEmptyOne) {
  const ranks::TemporaryFolder folder;
  EXPECT_EQ(latest(folder / "none"), std::nullopt);
  Checkpoint none = Checkpoints(folder / "none").load_latest();
  EXPECT_FALSE(none);
  EXPECT_EQ(none.step(), 0);
  EXPECT_EQ(none.get("epoch", 4), 4);
  EXPECT_EQ(none.get("best", 0.5), 0.5);
  EXPECT_EQ(none.get("name", "x"), "x");
  EXPECT_TRUE(none.rank_states().empty());
  EXPECT_TRUE(none.bucket_indices().empty());
  Small small;
  const Tensor before = small.model->weight.clone();
  none.restore(*small.model, small.optimizer);
  EXPECT_TRUE(torch::equal(small.model->weight, before));
}

TEST(Checkpoints, GivesScalarsBack) {
  const ranks::TemporaryFolder folder;
  const double infinity = std::numeric_limits<double>::infinity();
  const int epoch = 3;
  Small().save(folder.path(), 1, 2,
               {{"epoch", epoch}, {"best", infinity}, {"loss", 0.1 + 0.2}, {"name", "laptop"}});
  const Checkpoint back = Checkpoints(folder.path()).load_latest();
  EXPECT_EQ(back.step(), 1);
  EXPECT_EQ(back.world_size(), 1);
  EXPECT_EQ(back.get("epoch", 0), 3);
  EXPECT_EQ(back.get("best", 0.0), infinity);
  EXPECT_EQ(back.get("loss", 0.0), 0.1 + 0.2);
  EXPECT_EQ(back.get("name", ""), "laptop");
  EXPECT_THAT([&] { back.get("epochs", 0); }, ThrowsMessage<Error>(HasSubstr("'epochs'")));
  EXPECT_THAT([&] { back.get("epoch", 0.5); }, ThrowsMessage<Error>(HasSubstr("not a double")));
}

TEST(Checkpoints, KeepsTheNewestAndRemovesWhatKilledRunsLeft) {
  const ranks::TemporaryFolder folder;
  Small small;
  for (const int64_t step : {5, 10, 15}) small.save(folder.path(), step);
  std::filesystem::create_directories(folder / ".step-000000007.tmp/deeper");
  std::filesystem::create_directory(folder / "step-by-step notes");
  std::ofstream(folder / ".step-000000020.tmp").flush();
  small.save(folder.path(), 1'234'567'890'123);
  EXPECT_THAT(
      names_in(folder.path()),
      testing::UnorderedElementsAre("step-000000015", "step-1234567890123", "step-by-step notes"));
  EXPECT_EQ(latest(folder.path()), folder / "step-1234567890123");
  EXPECT_EQ(names_in(folder / "step-000000015"),
            (std::set<std::string>{"manifest.json", "model.safetensors", "optimizer.safetensors",
                                   "rank-0.safetensors"}));
  EXPECT_THAT([] { Checkpoints("x", {.keep = 0}); }, ThrowsMessage<Error>(HasSubstr("keep is 0")));
}

TEST(Checkpoints, OfTheSameStepAreReplacedAndEarlierOnesRefused) {
  const ranks::TemporaryFolder folder;
  Small small;
  small.save(folder.path(), 1, 1, {{"try", 1}});
  small.save(folder.path(), 1, 1, {{"try", 2}});
  EXPECT_EQ(Checkpoints(folder.path()).load_latest().get("try", 0), 2);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"step-000000001"});
  EXPECT_THAT([&] { small.save(folder.path(), 0); },
              ThrowsMessage<Error>(HasSubstr("it holds step-000000001, which is later")));
  EXPECT_THAT([&] { small.save(folder.path(), -1); }, ThrowsMessage<Error>(HasSubstr("step -1")));
}

TEST(Checkpoints, LoadsTheOneAskedFor) {
  const ranks::TemporaryFolder folder;
  Small small;
  small.save(folder.path(), 1);
  small.save(folder.path(), 2);
  Checkpoint first = Checkpoints(folder.path()).load(1);
  first.restore(*small.model, small.optimizer);
  EXPECT_EQ(small.model->weight[0][0].item<float>(), 1);
  EXPECT_THAT([&] { first.restore(*small.model, small.optimizer); },
              ThrowsMessage<Error>(HasSubstr("called a second time")));
  EXPECT_THAT([&] { Checkpoints(folder.path()).load(3); },
              ThrowsMessage<Error>(HasSubstr("no step-000000003. The newest is step-000000002")));
}

TEST(Checkpoints, OfAnotherModelChangeNothing) {
  const ranks::TemporaryFolder folder;
  Small().save(folder.path(), 1);
  torch::nn::Linear wider(3, 2);
  torch::optim::SGD optimizer(wider->parameters(), 0.5);
  const Tensor before = wider->weight.clone();
  torch::manual_seed(3);
  EXPECT_THAT([&] { Checkpoints(folder.path()).load_latest().restore(*wider, optimizer); },
              ThrowsMessage<Error>(HasSubstr("model.safetensors: 'weight' has shape [2, 2]")));
  Small small;
  torch::optim::SGD two_groups(
      std::vector<torch::optim::OptimizerParamGroup>{{{small.model->weight}},
                                                     {{small.model->bias}}},
      0.5);
  const Tensor weight = small.model->weight.clone();
  EXPECT_THAT([&] { Checkpoints(folder.path()).load_latest().restore(*small.model, two_groups); },
              ThrowsMessage<Error>(HasSubstr("1 parameter groups, the optimizer has 2")));
  EXPECT_TRUE(torch::equal(wider->weight, before));
  EXPECT_TRUE(torch::equal(small.model->weight, weight));
}

TEST(Checkpoints, PythonReadsTheModel) {
  const ranks::TemporaryFolder folder;
  Small small;
  small.save(folder.path(), 7);
  const auto python =
      oracle::json("safetensors_read.py", {(folder / "step-000000007/model.safetensors").string()});
  if (!python) GTEST_SKIP() << oracle::kMissing;
  if (python->is_null()) GTEST_SKIP() << "the oracle's Python has no safetensors package";
  EXPECT_EQ((*python)["tensors"]["weight"]["values"], (std::vector<double>(4, 7)));
  EXPECT_EQ((*python)["tensors"]["bias"]["shape"], std::vector<int64_t>{2});
}

}  // namespace
}  // namespace distributed_utils
