// The smallest task: a straight line through noisy points. Samples are pairs of numbers, nothing
// like text, so that a trainer that fits it knows nothing of the task it trains.
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"

namespace tasks::linear_regression {

std::vector<BuiltInConfig> built_in_configs();
Entry entry();

namespace {

struct Points : Dataset::Source {
  torch::Tensor x, y;  // [samples, 1]

  Points(std::string_view split, int64_t samples, double noise) {
    auto generator = at::detail::createCPUGenerator(split.size());
    x = torch::rand({samples, 1}, generator) * 2 - 1;
    y = 3 * x - 1 + noise * torch::randn({samples, 1}, generator);
  }

  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    const auto which =
        torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()), torch::kLong);
    return {x.index_select(0, which), y.index_select(0, which)};
  }

  size_t size() const override { return static_cast<size_t>(x.size(0)); }
};

class Line : public Model {
 public:
  Line() : linear_(register_module("linear", torch::nn::Linear(1, 1))) {}
  torch::Tensor compute(const Input& input) override { return linear_(input); }

 private:
  torch::nn::Linear linear_;
};

class LinearRegression : public Task {
 public:
  LinearRegression(const Options& options, const Config& config)
      : Task(options.precision),
        samples_(config.integer("samples", 1, 1'000'000)),
        noise_(config.real("noise", 0, 1)) {}

  Baselines baselines() const override { return {{"noise", noise_ * noise_}}; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    return std::make_shared<Points>(split, samples_, noise_);
  }
  std::string in_words(double mean_loss) const override {
    return fmt::format("{:.4f} squared units (noise {:.4f})", mean_loss, noise_ * noise_);
  }
  std::shared_ptr<Model> new_model() const override { return std::make_shared<Line>(); }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<torch::optim::SGD>>(std::move(parameters),
                                                         torch::optim::SGDOptions(0.1));
  }
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    return {(output - target.tensor()).square().sum(), target.count()};
  }

  int64_t samples_;
  double noise_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<LinearRegression>(options, config);
}

}  // namespace

Entry entry() {
  return {.name = "linear_regression",
          .summary = "fits a straight line",
          .configs = built_in_configs(),
          .keys = {"samples", "noise"},
          .make = &make};
}

}  // namespace tasks::linear_regression
