#include "distributed_utils/grad_scaler.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <limits>
#include <sstream>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two numbers and their optimizer; the loss's gradient is what a test says.
struct SmallModel {
  Tensor weight = torch::ones({2}).requires_grad_();
  torch::optim::SGD optimizer{{weight}, 0.5};

  /// A loss whose gradient is `slope` everywhere.
  Tensor loss(float slope) const { return (weight * slope).sum(); }
  void backward(GradScaler& scaler, float slope) {
    optimizer.zero_grad();
    scaler.scale(loss(slope)).backward();
  }
};

/// The words of one step of the script.
struct ScriptLine {
  explicit ScriptLine(const std::string& text) {
    std::istringstream stream(text);
    std::string word;
    while (stream >> word) words.push_back(word);
  }
  bool has(const char* word) const { return words.front() == word; }
  float value() const { return std::stof(words.back()); }

  std::vector<std::string> words;
};

/// What oracle/grad_scaler.py does in each step.
struct Script {
  Tensor weight = torch::tensor({1.0F, -2.0F, 0.5F}).requires_grad_();
  Tensor other = torch::tensor({3.0F, 0.125F}).requires_grad_();
  torch::optim::SGD optimizer{{weight}, torch::optim::SGDOptions(0.125).momentum(0.5)};
  torch::optim::AdamW second{{other}, torch::optim::AdamWOptions(0.25)};
  GradScaler scaler{{.init_scale = 3 * 32768.0, .growth_factor = 4, .growth_interval = 3}};

  bool step(const ScriptLine& line, int number) {
    optimizer.zero_grad();
    second.zero_grad();
    const float in_second = line.has("second") ? line.value() : 0.5F;
    const Tensor row = torch::tensor({line.value(), 0.3F, static_cast<float>(number / 7.0)});
    const Tensor loss =
        (weight * row).sum() + (other * torch::tensor({0.5F, 1.5F})).sum() * in_second;
    scaler.scale(loss).backward();
    if (line.has("unscale")) {
      scaler.unscale_(optimizer);
      torch::nn::utils::clip_grad_norm_({weight}, 1.0);
    }
    const bool stepped = scaler.step(optimizer);
    if (line.has("second")) scaler.step(second);
    if (line.has("new-scale")) {
      scaler.update(640);
    } else {
      scaler.update();
    }
    return stepped;
  }
};

Tensor numbers(const nlohmann::json& json) { return torch::tensor(json.get<std::vector<float>>()); }

TEST(GradScaler, AgreesWithPythons) {
  const auto python = oracle::json("grad_scaler.py");
  if (!python) GTEST_SKIP() << oracle::kMissing;
  Script script;
  int number = 0, skipped = 0;
  for (const auto& expected : python->at("steps")) {
    const std::string text = expected.at("step");
    const bool stepped = script.step(ScriptLine(text), number++);
    skipped += stepped ? 0 : 1;
    const std::string where = "after step " + std::to_string(number) + ", " + text;
    EXPECT_EQ(stepped, expected.at("stepped").get<bool>()) << where;
    EXPECT_EQ(script.scaler.get_scale(), expected.at("scale").get<double>()) << where;
    EXPECT_EQ(script.scaler.get_growth_tracker(), expected.at("growth_tracker").get<int>())
        << where;
    EXPECT_TRUE(torch::equal(script.weight, numbers(expected.at("weight")))) << where;
    EXPECT_TRUE(torch::equal(script.other, numbers(expected.at("other")))) << where;
  }
  EXPECT_GE(number, 20);
  EXPECT_EQ(skipped, 7);
  const StateDict state = script.scaler.state_dict();
  EXPECT_EQ(state.size(), python->at("state").size());
  for (const auto& [name, value] : python->at("state").items()) {
    EXPECT_EQ(state.at(name).item<double>(), value.get<double>()) << name;
  }
}

TEST(GradScaler, ScaleStaysANumber) {
  SmallModel small;
  GradScaler scaler({.init_scale = 1e38, .growth_factor = 1e3, .growth_interval = 1});
  small.backward(scaler, 1e-30F);
  EXPECT_TRUE(scaler.step(small.optimizer));
  scaler.update();
  EXPECT_EQ(static_cast<float>(scaler.get_scale()), 1e38F) << "it would have become infinite";
}

TEST(GradScaler, RefusesStepsOutOfOrder) {
  SmallModel small;
  GradScaler scaler;
  const auto refuses = [](auto call, const char* why) {
    EXPECT_THAT(call, ThrowsMessage<Error>(HasSubstr(why)));
  };
  const auto unscale = [&] { scaler.unscale_(small.optimizer); };
  const auto step = [&] { scaler.step(small.optimizer); };
  refuses(unscale, "before the first scale()");
  refuses(step, "before the first scale()");
  refuses([&] { scaler.update(); }, "before the first scale()");
  scaler.scale(torch::ones({}));
  refuses([&] { scaler.update(); }, "before any step()");
  refuses(step, "has a gradient");
  scaler.update(8);
  refuses([&] { scaler.update(0); }, "more than 0");
  refuses([&] { scaler.found_inf(small.optimizer); }, "nobody has checked");
  small.backward(scaler, 3);
  unscale();
  EXPECT_EQ(small.weight.grad()[0].item<float>(), 3);
  refuses(unscale, "was called twice on this optimizer");
  EXPECT_EQ(scaler.found_inf(small.optimizer).item<float>(), 0);
  step();
  EXPECT_EQ(small.weight[0].item<float>(), -0.5F);
  refuses(unscale, "was called after step()");
  refuses(step, "was called twice on this optimizer");
  scaler.update();
  small.backward(scaler, 3);
  unscale();
}

TEST(GradScaler, RefusesHalfGradientsAndSillyOptions) {
  Tensor weight = torch::ones({2}, torch::kHalf).requires_grad_();
  torch::optim::SGD optimizer({weight}, 0.5);
  GradScaler scaler({.init_scale = 8});
  scaler.scale(weight.sum()).backward();
  EXPECT_THAT([&] { scaler.step(optimizer); }, ThrowsMessage<Error>(HasSubstr("fp16")));
  for (const GradScalerOptions& silly : std::vector<GradScalerOptions>{{.init_scale = 0},
                                                                       {.growth_factor = 1},
                                                                       {.backoff_factor = 1},
                                                                       {.backoff_factor = 0},
                                                                       {.growth_interval = 0}}) {
    EXPECT_THAT([&] { GradScaler{silly}; }, ThrowsMessage<Error>(HasSubstr("GradScaler: scale")));
  }
}

TEST(GradScaler, DoesNothingIfNotEnabled) {
  SmallModel small;
  GradScaler scaler({.init_scale = -1, .enabled = false});
  const Tensor loss = small.loss(kInfinity);
  EXPECT_TRUE(scaler.scale(loss).is_same(loss));
  loss.backward();
  scaler.unscale_(small.optimizer);
  scaler.unscale_(small.optimizer);
  EXPECT_TRUE(scaler.step(small.optimizer));
  EXPECT_FALSE(torch::isfinite(small.weight).any().item<bool>());
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
  scaler.load_state_dict({});
}

TEST(GradScaler, StateSurvivesAFile) {
  const ranks::TemporaryFolder folder;
  const auto step = [](SmallModel& small, GradScaler& scaler, float slope) {
    small.backward(scaler, slope);
    scaler.step(small.optimizer);
    scaler.update();
  };
  SmallModel small, twin;
  GradScaler scaler({.init_scale = 24, .growth_interval = 3});
  for (const float slope : {1.0F, kInfinity, 2.0F, 3.0F}) step(small, scaler, slope);
  save_file(scaler.state_dict(), folder / "scaler.safetensors");
  const StateDict state = load_file(folder / "scaler.safetensors");
  GradScaler fresh, used;
  step(twin, used, 1);
  for (auto* other : {&fresh, &used}) {
    other->load_state_dict(state);
    EXPECT_EQ(other->get_scale(), 12);
    EXPECT_EQ(other->get_growth_tracker(), 2);
    step(twin, *other, 1);
    EXPECT_EQ(other->get_scale(), 24) << "the third good step";
  }
  StateDict less = state;
  less.erase("_growth_tracker");
  EXPECT_THAT([&] { fresh.load_state_dict(less); },
              ThrowsMessage<Error>(HasSubstr("'_growth_tracker'")));
  EXPECT_THAT([&] { fresh.load_state_dict({}); },
              ThrowsMessage<Error>(HasSubstr("saved it disabled")));
  EXPECT_EQ(fresh.get_scale(), 24) << "unchanged";
}

// Each rank has gradients of its own, of which one is infinite, as where parameters are in pieces.
TEST(GradScaler, AllRanksSkipWhatOneCannotTake) {
  ranks::run(3, [] {
    const World world = setup();
    SmallModel small;
    GradScaler scaler({.init_scale = 16});
    small.backward(scaler, world.rank == 1 ? kInfinity : 1);
    EXPECT_FALSE(scaler.step(small.optimizer));
    EXPECT_EQ(scaler.found_inf(small.optimizer).item<float>(), 1);
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 8);
    EXPECT_TRUE(torch::equal(small.weight, torch::ones({2})));
    // A rank without gradients takes part; and without the agreement each decides for itself.
    small.optimizer.zero_grad();
    if (world.rank != 2) scaler.scale(small.loss(1)).backward();
    EXPECT_TRUE(scaler.step(small.optimizer));
    scaler.update();
    GradScaler alone({.agree = false});
    small.backward(alone, world.rank == 1 ? kInfinity : 1);
    EXPECT_EQ(alone.step(small.optimizer), world.rank != 1);
  });
}

TEST(GradScaler, AveragedGradientsAgreeByThemselves) {
  ranks::run(2, [] {
    const World world = setup();
    const auto model = DistributedDataParallel(torch::nn::Linear(2, 1));
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    GradScaler scaler({.agree = false});
    const Tensor input = torch::full({1, 2}, world.rank == 1 ? kInfinity : 1);
    scaler.scale(model->forward(input).sum()).backward();
    EXPECT_FALSE(scaler.step(optimizer));
  });
}

}  // namespace
}  // namespace distributed_utils
