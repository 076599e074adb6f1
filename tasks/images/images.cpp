// Classes of pictures: a residual network, as the course on ImageWoof trains it.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>

#include "folders.hpp"
#include "operators/adamw.hpp"
#include "pictures.hpp"
#include "settings.hpp"
#include "tasks/autocast.hpp"
#include "tasks/prepared.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"

namespace tasks::images {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();  // called by the table of tasks

namespace {

// Where the built-in pictures of these options lie.
std::filesystem::path built_in_pictures(const BreedsOptions& options) {
  // The last number is that of what draws them: who changes what a picture shows raises it.
  const auto name = fmt::format("breeds-{}-pixels-{}-{}-spread-{}-seed-{}-1", options.side,
                                options.train_pictures, options.evaluation_pictures, options.spread,
                                options.seed);
  return prepared(name,
                  [&](const std::filesystem::path& folder) { write_breeds(options, folder); });
}

class Images : public Task {
 public:
  Images(const Options& options, const Settings& settings)
      : Task(options.precision),
        options_(options),
        settings_(settings),
        folders_(find_pictures(options.data ? *options.data : built_in_pictures(settings.breeds))) {
    settings_.model.classes = static_cast<int64_t>(folders_.classes.size());
    settings_.model.products = options.products;
    settings_.model.fused_norm = options.fast.has("norm");
    settings_.model.fused_pools = options.fast.has("pool");
    baselines_.emplace_back("chance", std::log(double(settings_.model.classes)));
    if (!options.data) {
      const auto best = best_possible(settings_.breeds.spread);
      baselines_.emplace_back(fmt::format("best possible with accuracy {:.3f}", best.accuracy),
                              best.loss);
    }
  }

  Baselines baselines() const override { return baselines_; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    return make_source(folders_.split(split), {.view = settings_.view,
                                               .training = split == "train",
                                               .seed = options_.seed,
                                               .type = options_.precision,
                                               .channels_last = settings_.model.channels_last,
                                               .keep_decoded = settings_.keep_decoded});
  }

  std::shared_ptr<Model> new_model() const override {
    return std::make_shared<XResNet>(settings_.model);
  }

  // Fastai's Adam, with its constants (fastai/optimizer.py, fastai/learner.py).
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<operators::FusedAdamW>>(
        std::move(parameters), torch::optim::AdamWOptions(settings_.learning_rate)
                                   .betas({0.9, 0.99})
                                   .eps(1e-5)
                                   .weight_decay(settings_.weight_decay));
  }

  Schedule::Factor schedule(int64_t total_steps) const override { return one_cycle(total_steps); }

  std::string in_words(double mean_loss) const override {
    std::string text = fmt::format("{:.3f} nats a picture", mean_loss);
    const char* separator = " (";
    for (const auto& [name, value] : baselines_) {
      text += fmt::format("{}{} {:.3f}", separator, name, value);
      separator = ", ";
    }
    return text + ")";
  }

  // output: logits [batch, classes]; target: int64 [batch].
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    const auto logits = are_narrow(settings_.model.products) ? output.to(at::kFloat) : output;
    return {at::cross_entropy_loss(logits, target, /*weight=*/{}, at::Reduction::Sum),
            target.count()};
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}, {"top-5"}}; }

  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto most = std::min<int64_t>(5, output.size(1));
    const auto hits =
        std::get<1>(output.topk(most, 1)).eq(target.tensor().unsqueeze(1)).to(torch::kDouble);
    const auto count = torch::full({}, static_cast<double>(target.count()), hits.options());
    return torch::stack(
        {torch::stack({hits.narrow(1, 0, 1).sum(), count}), torch::stack({hits.sum(), count})});
  }

  Options options_;
  Settings settings_;
  Folders folders_;
  Baselines baselines_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<Images>(options, Settings::from(config));
}

}  // namespace

Entry entry() {
  return {.name = "images",
          .summary = "tells classes of pictures apart with a residual network",
          .configs = built_in_configs(),
          .keys = Settings::keys(),
          .fast = {"norm", "pool"},
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::images
