#include <fmt/format.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "data.hpp"
#include "model.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"

namespace tasks::points {

std::vector<BuiltInConfig> built_in_configs();
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();

namespace {

constexpr double kClose = 0.25;

bool wants_fp16(const Config& config) {
  const auto* value = config.find("fp16");
  return value != nullptr && parse_boolean(*value);
}

class HeightsOfPoints : public Task {
 public:
  HeightsOfPoints(const Options& options, const Config& config)
      : Task(wants_fp16(config) ? torch::kHalf : options.precision),
        learning_rate_(config.real("learning_rate", 0, 1)),
        data_{.train_samples = config.integer("train_samples", 1, 1'000'000),
              .evaluation_samples = config.integer("evaluation_samples", 1, 1'000'000),
              .type = wants_fp16(config) ? torch::kHalf : options.precision} {}

  std::vector<std::string> splits() const override { return split_names(); }
  Baselines baselines() const override { return {}; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    return make_source(split, data_);
  }
  std::shared_ptr<Model> new_model() const override { return std::make_shared<Heights>(); }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<torch::optim::SGD>>(
        std::move(parameters), torch::optim::SGDOptions(learning_rate_).momentum(0.9));
  }
  Schedule::Factor schedule(int64_t total_steps) const override {
    return cosine_with_warm_up(total_steps, std::min<int64_t>(4, total_steps));
  }
  std::string in_words(double mean_loss) const override {
    return fmt::format("{:.4f} squared units", mean_loss);
  }
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    return {(output - target.tensor()).square().sum(), target.count()};
  }
  std::vector<Metric> metrics() const override {
    return {{"close", Metric::Of::ratio}, {"RMSE", Metric::Of::root_of_ratio}};
  }
  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto error = (output - target.tensor()).to(torch::kDouble);
    const auto count = torch::full({}, target.count(), error.options());
    return torch::stack({torch::stack({error.abs().lt(kClose).sum().to(torch::kDouble), count}),
                         torch::stack({error.square().sum(), count})});
  }

  double learning_rate_;
  DataOptions data_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<HeightsOfPoints>(options, config);
}

}  // namespace

Entry entry() {
  return {.name = "points",
          .summary = "finds the heights of points of three kinds",
          .configs = built_in_configs(),
          .keys = {"learning_rate", "train_samples", "evaluation_samples", "fp16"},
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::points
