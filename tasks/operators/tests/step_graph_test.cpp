#include "tasks/step_graph.hpp"

#include <cstdlib>

#include "devices.hpp"

namespace tasks {
namespace {

// On CPUs, a stand-in takes the place of the graph.
class StepGraphTest : public operators::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    setenv("WORLDSIZE_GRAPH_STAND_IN", "1", /*overwrite=*/1);  // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    unsetenv("WORLDSIZE_GRAPH_STAND_IN");
  }  // NOLINT(concurrency-mt-unsafe)
};
WORLDSIZE_ON_DEVICES(StepGraphTest);

constexpr int kSteps = 30, kShortStep = 20;

struct Run {
  std::vector<double> losses;
  std::vector<torch::Tensor> parameters;
  int64_t counted = 0;
  int64_t replays = 0;
};

// What a trainer is, in one piece. after_backward: what a step does beside the usual.
struct Trainer {
  explicit Trainer(torch::Device on, const Options& options)
      : device(on), graph(options), task(make_task(options)) {
    torch::manual_seed(0);
    model = task->make_model();
    model->to(device);
    model->train();
    optimizer = task->make_optimizer(model->parameters());
    schedule = std::make_unique<Schedule>(*optimizer, step_decay(3, 0.9));
  }

  Loss take(const Batch& batch) {
    auto loss = graph.take(batch, [this](const Batch& taken) {
      const auto [input, target] = taken.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      after_backward();
      optimizer->step();
      return loss;
    });
    schedule->step();
    return loss;
  }

  torch::Device device;
  StepGraph graph;
  std::shared_ptr<Task> task;
  std::shared_ptr<Model> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<Schedule> schedule;
  std::function<void()> after_backward = [] {};
};

Options options_of(torch::Device device, Fast fast, Products products = Products::as_stored) {
  Options options;
  options.device = device;
  options.fast = std::move(fast);
  options.products = products;
  options.output = std::filesystem::path(testing::TempDir()) / "step_graph_test";
  apply(options);
  return options;
}

Batch batch_of(Dataset& data, int step) {
  std::vector<size_t> indices;
  const size_t count = step == kShortStep ? 5 : 8;
  for (size_t j = 0; j < count; ++j) indices.push_back(size_t(step) * 8 + j);
  return data.get_batch(indices);
}

Run train(torch::Device device, const Fast& fast, Products products) {
  Trainer trainer(device, options_of(device, fast, products));
  auto data = trainer.task->dataset("train");
  Run run;
  std::vector<Loss> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(trainer.take(batch_of(data, i)));
  // At the end: a loss stays what it was when later steps overwrite what a graph writes.
  for (const auto& loss : losses) run.losses.push_back(loss.mean().item<double>());
  for (const auto& parameter : trainer.model->parameters()) {
    run.parameters.push_back(parameter.detach().clone());
    run.counted = dynamic_cast<torch::optim::AdamWParamState&>(
                      *trainer.optimizer->state().at(parameter.unsafeGetTensorImpl()))
                      .step();
  }
  run.replays = trainer.graph.replays();
  return run;
}

// Dropout included: a graph's random numbers go on where the steps before it stopped. A batch of
// another size in between is no trouble, and learning rates change from step to step.
TEST_P(StepGraphTest, ChangesNoBit) {
  for (const auto products : {Products::as_stored, Products::tf32, Products::bf16}) {
    Fast fast{.parts = {"loss", "optimizer", "embedding", "attention", "norm", "relu"}};
    const auto eager = train(GetParam(), fast, products);
    fast.parts.insert("graph");
    const auto graphed = train(GetParam(), fast, products);
    EXPECT_EQ(eager.replays, 0);
    EXPECT_EQ(graphed.replays, kSteps - 12 - 3 - 1);  // but for the warm-up and the short batch
    EXPECT_EQ(graphed.losses, eager.losses);
    EXPECT_LT(eager.losses.back(), eager.losses.front());
    EXPECT_EQ(graphed.counted, kSteps);
    for (size_t i = 0; i < eager.parameters.size(); ++i) {
      EXPECT_TRUE(torch::equal(graphed.parameters[i], eager.parameters[i])) << i;
    }
  }
}

std::string said_with(Trainer& trainer) {
  auto data = trainer.task->dataset("train");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 15; ++i) trainer.take(batch_of(data, i));
  return testing::internal::GetCapturedStderr();
}

TEST_P(StepGraphTest, SaysWhyThereIsNone) {
  const auto options = options_of(GetParam(), {.parts = {"graph", "optimizer"}});
  Trainer twice(GetParam(), options);
  twice.after_backward = [&] { twice.optimizer->step(); };
  EXPECT_THAT(said_with(twice), testing::HasSubstr("does not step exactly once"));
  EXPECT_EQ(twice.graph.replays(), 0);

  Trainer other(GetParam(), options_of(GetParam(), {.parts = {"graph"}}));  // torch's own AdamW
  other.optimizer = std::make_unique<torch::optim::SGD>(other.model->parameters(), 1e-3);
  other.schedule = std::make_unique<Schedule>(*other.optimizer);
  EXPECT_THAT(said_with(other), testing::HasSubstr("does not step exactly once"));

  if (GetParam() != torch::kCUDA) return;
  Trainer reads(GetParam(), options);
  reads.after_backward = [&] { (void)reads.model->parameters()[0].grad().norm().item<double>(); };
  EXPECT_THAT(said_with(reads), testing::HasSubstr("reads a GPU value"));
  EXPECT_EQ(reads.graph.replays(), 0);
}

TEST(StepGraph, NeedsAGpu) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a GPU here";
  Trainer trainer(torch::kCPU, options_of(torch::kCPU, {.parts = {"graph"}}));
  EXPECT_THAT(said_with(trainer), testing::HasSubstr("LibTorch finds no usable GPU here"));
  Trainer all(torch::kCPU, options_of(torch::kCPU, {.parts = {"graph"}, .all = true}));
  EXPECT_THAT(said_with(all), testing::IsEmpty());
}

}  // namespace
}  // namespace tasks
