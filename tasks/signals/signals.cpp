// Labels for each moment of a noisy signal: a small convolutional network.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include "data.hpp"
#include "distributed_utils/sync_batch_norm.hpp"
#include "drawn.hpp"
#include "operators/adamw.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"

namespace tasks::signals {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();  // called by the table of tasks

namespace {

/// Adds a number to each moment, which tells the moments apart.
class Positions : public torch::nn::Module {
 public:
  Positions(int64_t length, double size)
      : positions_(register_buffer("positions", size * torch::randn({length}))) {}

  torch::Tensor forward(const torch::Tensor& moments) { return moments + positions_; }

 private:
  torch::Tensor positions_;  // drawn with the weights, and never trained
};

/// A convolution over the moments, normalised. In and out: [batch, channels, 1, length].
class Layer : public torch::nn::Module {
 public:
  Layer(int64_t in, int64_t out)
      : convolution_(register_module("convolution", convolution(in, out))),
        norm_(register_module("norm", norm(out))) {}

  torch::Tensor forward(const torch::Tensor& input) {
    return torch::relu(norm_(convolution_(input)));
  }

 private:
  // Without a bias, which the normalisation behind it would take away.
  static torch::nn::Conv2d convolution(int64_t in, int64_t out) {
    constexpr int64_t kReach = 7;
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, {1, kReach}).padding({0, kReach / 2}).bias(false));
  }

  // Of the rank's own batch, until convert_sync_batchnorm() is called on the model.
  static distributed_utils::SyncBatchNorm2d norm(int64_t width) {
    distributed_utils::SyncBatchNorm2d norm(width);
    norm->synchronize(false);
    return norm;
  }

  torch::nn::Conv2d convolution_;
  distributed_utils::SyncBatchNorm2d norm_;
};

/// Input: values [batch, length]; returns logits [batch, kLabels, length]. Its parts have parts, as
/// those of large models do.
class Labeller : public Model {
 public:
  /// positions: how large the numbers are that are added to the moments; 0: none are.
  Labeller(int64_t width, int64_t length, double positions)
      : first_(register_module("first", std::make_shared<Layer>(1, width))),
        second_(register_module("second", std::make_shared<Layer>(width, width))),
        output_(register_module("output", torch::nn::Conv2d(width, kLabels, 1))) {
    if (positions == 0) return;
    positions_ = register_module("moments", std::make_shared<Positions>(length, positions));
  }

 private:
  torch::Tensor compute(const Input& input) override {
    const auto moments = positions_ ? positions_->forward(input[0]) : input[0];
    const auto values = moments.unsqueeze(1).unsqueeze(1);  // [batch, 1, 1, length]
    return output_(second_->forward(first_->forward(values))).squeeze(2);
  }

  std::shared_ptr<Layer> first_, second_;
  torch::nn::Conv2d output_;
  std::shared_ptr<Positions> positions_;
};

class LabelsOfSignals : public Task {
 public:
  LabelsOfSignals(const Options& options, const Config& config)
      : Task(options.precision),
        type_(options.precision),
        width_(config.integer("width", 1, 4096)),
        length_(config.integer("length", 1, 4096)),
        positions_(config.real("positions", 0, 10)),
        learning_rate_(config.real("learning_rate", 0, 1)),
        warm_up_steps_(config.integer("warm_up_steps", 0, 1'000'000)),
        folder_(prepared_signals(
            {.train_signals = config.integer("train_signals", 1, 1'000'000),
             .evaluation_signals = config.integer("evaluation_signals", 1, 1'000'000),
             .length = length_,
             .seed = config.integer("signals_seed", 0, 1'000'000'000),
             .preparation_seconds = config.real("preparation_seconds", 0, 3600)})) {
    if (options.data) {
      throw Error("--data: signals are built in. Fix: leave --data out.");
    }
    baselines_ = {{"chance", std::log(double{kLabels})},
                  {"best possible", least_loss_of(folder_, "validation")}};
  }

  Baselines baselines() const override { return baselines_; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    return make_source(folder_, split, type_);
  }
  std::shared_ptr<Model> new_model() const override {
    return std::make_shared<Labeller>(width_, length_, positions_);
  }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<operators::FusedAdamW>>(
        std::move(parameters), torch::optim::AdamWOptions(learning_rate_));
  }
  Schedule::Factor schedule(int64_t total_steps) const override {
    return cosine_with_warm_up(total_steps, warm_up_steps_);
  }
  std::string in_words(double mean_loss) const override {
    return fmt::format("{:.4f} nats a moment (chance {:.2f}, best possible {:.4f})", mean_loss,
                       baselines_[0].second, baselines_[1].second);
  }
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    return {
        at::cross_entropy_loss(output, target.tensor(), /*weight=*/{}, at::Reduction::Sum, kPad),
        target.count()};
  }
  std::vector<Metric> metrics() const override { return {{"accuracy", Metric::Of::ratio}}; }
  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto hits = output.argmax(1).eq(target.tensor()).sum().to(torch::kDouble);
    return torch::stack({hits, torch::full({}, target.count(), hits.options())}).unsqueeze(0);
  }

  torch::Dtype type_;
  int64_t width_, length_;
  double positions_;
  double learning_rate_;
  int64_t warm_up_steps_;
  std::filesystem::path folder_;
  Baselines baselines_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<LabelsOfSignals>(options, config);
}

}  // namespace

Entry entry() {
  return {.name = "signals",
          .summary = "labels the moments of noisy signals; small, for a first try",
          .configs = built_in_configs(),
          .keys = {"train_signals", "evaluation_signals", "length", "signals_seed",
                   "preparation_seconds", "width", "positions", "learning_rate", "warm_up_steps"},
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::signals
