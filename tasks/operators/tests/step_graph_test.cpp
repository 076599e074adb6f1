#include "tasks/step_graph.hpp"

#include "devices.hpp"

namespace tasks {
namespace {

class StepGraphTest : public operators::OnDevice {};
WORLDSIZE_ON_DEVICES(StepGraphTest);

struct Run {
  std::vector<double> losses;
  std::vector<torch::Tensor> parameters;
  int64_t counted = 0;
  bool captured = false;
};

Run train(torch::Device device, const Fast& fast, Products products, int steps) {
  Options options;
  options.fast = fast;
  options.products = products;
  torch::manual_seed(0);
  StepGraph::prepare(options, device);
  const auto task = make_task(options);
  const auto model = task->make_model();
  model->to(device);
  model->train();
  const auto optimizer = task->make_optimizer(model->parameters());
  StepGraph step(options, *optimizer, [&](const Batch& batch) {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    return loss;
  });
  auto data = task->dataset("train");
  Run run;
  for (int i = 0; i < steps; ++i) {
    std::vector<size_t> indices;
    for (size_t j = 0; j < (i == 20 ? 5u : 8u); ++j) indices.push_back(size_t(i) * 8 + j);
    run.losses.push_back(step(data.get_batch(indices), device).mean().item<double>());
  }
  for (const auto& parameter : model->parameters()) {
    run.parameters.push_back(parameter.detach().clone());
    run.counted = dynamic_cast<torch::optim::AdamWParamState&>(
                      *optimizer->state().at(parameter.unsafeGetTensorImpl()))
                      .step();
  }
  run.captured = step.captured();
  return run;
}

// Dropout included: a graph's random numbers go on where the steps before it stopped. A batch of
// another size in between is no trouble.
TEST_P(StepGraphTest, ChangesNoBit) {
  for (const auto products : {Products::as_stored, Products::tf32, Products::bf16}) {
    Fast fast{.parts = {"loss", "optimizer", "embedding", "attention", "norm", "relu"}};
    const auto eager = train(GetParam(), fast, products, 30);
    fast.parts.insert("graph");
    const auto graphed = train(GetParam(), fast, products, 30);
    EXPECT_EQ(graphed.captured, GetParam() == torch::kCUDA);
    EXPECT_EQ(graphed.losses, eager.losses);
    EXPECT_LT(eager.losses.back(), eager.losses.front());
    EXPECT_EQ(graphed.counted, 30);
    for (size_t i = 0; i < eager.parameters.size(); ++i) {
      EXPECT_TRUE(torch::equal(graphed.parameters[i], eager.parameters[i])) << i;
    }
  }
}

}  // namespace
}  // namespace tasks
