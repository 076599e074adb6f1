#include "distributed_utils/optimizer_state.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/error.hpp"
#include "distributed_utils/save.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct DerivedAdamW : torch::optim::AdamW {
  using AdamW::AdamW;
};

template <typename Optimizer, typename Options>
std::shared_ptr<torch::optim::Optimizer> make(const torch::nn::Module& model,
                                              const Options& options) {
  return std::make_shared<Optimizer>(model.parameters(), options);
}

torch::nn::Sequential net(uint64_t seed, int64_t width = 4) {
  torch::manual_seed(seed);
  torch::nn::Sequential model(torch::nn::Linear(3, width), torch::nn::Linear(width, 2));
  model->register_parameter("unused", torch::zeros({2}));  // never has a gradient
  return model;
}

void train(torch::nn::Sequential& model, torch::optim::Optimizer& optimizer, int from, int to) {
  for (int step = from; step < to; ++step) {
    auto generator = at::detail::createCPUGenerator(step);
    optimizer.zero_grad();
    model->forward(torch::randn({5, 3}, generator)).pow(2).mean().backward();
    optimizer.step();
  }
}

/// Two halves with a new optimizer in between must be one whole.
template <typename Optimizer, typename Options>
StateDict expect_resumes(const Options& options) {
  auto whole = net(1);
  const auto whole_optimizer = make<Optimizer>(*whole, options);
  train(whole, *whole_optimizer, 0, 6);

  auto half = net(1);
  const auto half_optimizer = make<Optimizer>(*half, options);
  train(half, *half_optimizer, 0, 3);
  half_optimizer->param_groups()[0].options().set_lr(0.25);
  const StateDict state = optimizer_state_dict(*half_optimizer, *half);
  const auto resumed = make<Optimizer>(*half, options);
  load_optimizer_state_dict(*resumed, *half, state);
  EXPECT_EQ(resumed->param_groups()[0].options().get_lr(), 0.25);
  resumed->param_groups()[0].options().set_lr(
      whole_optimizer->param_groups()[0].options().get_lr());
  train(half, *resumed, 3, 6);

  const auto expected = state_dict(*whole);
  for (const auto& [name, tensor] : state_dict(*half)) {
    EXPECT_TRUE(torch::equal(tensor, expected.at(name))) << name;
  }
  return state;
}

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : state) result.push_back(name);
  return result;
}

TEST(OptimizerState, ResumesEachKind) {
  using namespace torch::optim;
  expect_resumes<AdamW>(AdamWOptions(0.01));
  expect_resumes<AdamW>(AdamWOptions(0.01).amsgrad(true));
  expect_resumes<Adam>(AdamOptions(0.01).weight_decay(0.1));
  expect_resumes<SGD>(SGDOptions(0.1).momentum(0.9));
  expect_resumes<SGD>(SGDOptions(0.1));
  expect_resumes<DerivedAdamW>(AdamWOptions(0.01));
}

TEST(OptimizerState, IsNamedAsPythons) {
  using namespace torch::optim;
  EXPECT_THAT(names(expect_resumes<AdamW>(AdamWOptions(0.01).amsgrad(true))),
              testing::IsSupersetOf({"exp_avg.0.weight", "exp_avg_sq.1.bias",
                                     "max_exp_avg_sq.0.bias", "step.1.weight", "lr.0"}));
  const auto sgd = names(expect_resumes<SGD>(SGDOptions(0.1).momentum(0.9)));
  EXPECT_THAT(sgd,
              testing::ElementsAre("lr.0", "momentum_buffer.0.bias", "momentum_buffer.0.weight",
                                   "momentum_buffer.1.bias", "momentum_buffer.1.weight"));
}

TEST(OptimizerState, RefusesAnothersAndChangesNothing) {
  using namespace torch::optim;
  auto model = net(1);
  const auto adamw = make<AdamW>(*model, AdamWOptions(0.01));
  train(model, *adamw, 0, 2);
  const StateDict good = optimizer_state_dict(*adamw, *model);
  const auto refused = [&](auto& optimizer, torch::nn::Sequential& of, const StateDict& state,
                           const char* why) {
    const auto before = optimizer_state_dict(*optimizer, *of);
    EXPECT_THAT([&] { load_optimizer_state_dict(*optimizer, *of, state); },
                ThrowsMessage<Error>(HasSubstr(why)));
    EXPECT_EQ(names(optimizer_state_dict(*optimizer, *of)), names(before));
  };
  const auto sgd = make<SGD>(*model, SGDOptions(0.1).momentum(0.9));
  refused(sgd, model, good, "'momentum_buffer.0.weight' is not in it");
  auto wide = net(1, 5);
  const auto of_wide = make<AdamW>(*wide, AdamWOptions(0.01));
  refused(of_wide, wide, good, "has shape [4, 3], the parameter's is [5, 3]");
  StateDict more = good;
  more["exp_avg.2.weight"] = torch::zeros({1});
  refused(adamw, model, more, "'2.weight', which is not a parameter");
  StateDict less = good;
  less.erase("step.0.weight");
  refused(adamw, model, less, "'step.0.weight' is not in it");
  StateDict grouped = good;
  grouped["lr.1"] = torch::tensor(0.1, torch::kDouble);
  refused(adamw, model, grouped, "it has 2 parameter groups, the optimizer has 1");
  const auto other = make<AdamW>(*wide, AdamWOptions(0.01));
  EXPECT_THAT([&] { optimizer_state_dict(*other, *model); },
              ThrowsMessage<Error>(HasSubstr("that the model does not have")));
}

TEST(OptimizerState, AnUnknownKindWithStateIsAnError) {
  auto model = net(1);
  torch::optim::RMSprop rmsprop(model->parameters());
  train(model, rmsprop, 0, 1);
  EXPECT_THAT([&] { optimizer_state_dict(rmsprop, *model); },
              ThrowsMessage<Error>(HasSubstr("Adam, AdamW or SGD")));
}

}  // namespace
}  // namespace distributed_utils
