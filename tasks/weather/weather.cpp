// The weather of the next time step: a vision transformer on global fields.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "built_in.hpp"
#include "fields.hpp"
#include "measures.hpp"
#include "operators/adamw.hpp"
#include "settings.hpp"
#include "tasks/autocast.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"
#include "vision_transformer.hpp"

namespace tasks::weather {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();  // called by the table of tasks

namespace {

class Weather : public Task {
 public:
  Weather(const Options& options, const Settings& settings)
      : Task(options.precision),
        type_(options.precision),
        products_(options.products),
        fused_norm_(options.fast.has("norm")),
        fast_optimizer_(options.fast.has("optimizer")),
        settings_(settings) {
    if (options.data) {
      folder_ = *options.data;
    } else {
      const auto built_in = built_in_data(settings.planet);
      folder_ = built_in.folder;
      // They are those of one time step.
      if (settings.lead == 1) marks_ = built_in.marks;
    }
    check_grid();
  }

  Baselines baselines() const override {
    // A forecast of the climate, which is zero everywhere, misses all there is.
    Baselines known{{"climatology", 1.0}};
    if (marks_) {
      known.emplace_back("persistence", marks_->persistence_loss);
      known.emplace_back("best forecast", marks_->perfect_loss);
    }
    return known;
  }

 private:
  void check_grid() {
    const Fields train(folder_, "train", settings_.lead, type_);
    channels_ = train.channels();
    height_ = train.height();
    width_ = train.width();
    if (height_ % settings_.patch == 0 && width_ % settings_.patch == 0) return;
    throw Error(fmt::format(
        "{}: its grid of {} x {} does not divide into patches of {} x {}; set "
        "another 'patch' in the configuration",
        train.first_file().string(), height_, width_, settings_.patch, settings_.patch));
  }

  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    auto fields = std::make_shared<Fields>(folder_, split, settings_.lead, type_);
    if (fields->channels() == channels_ && fields->height() == height_ &&
        fields->width() == width_) {
      return fields;
    }
    throw Error(fmt::format("{}: it has {} channels of {} x {}, the training split {} of {} x {}",
                            fields->first_file().string(), fields->channels(), fields->height(),
                            fields->width(), channels_, height_, width_));
  }

  std::shared_ptr<Model> new_model() const override {
    copies_ = fast_optimizer_ && are_narrow(products_)
                  ? std::make_shared<operators::NarrowCopies>(narrow_type(products_))
                  : nullptr;
    return std::make_shared<VisionTransformer>(
        VisionTransformerOptions{.channels = channels_,
                                 .height = height_,
                                 .width = width_,
                                 .patch = settings_.patch,
                                 .embedding = settings_.embedding,
                                 .heads = settings_.heads,
                                 .layers = settings_.layers,
                                 .products = products_,
                                 .copies = copies_,
                                 .fused_norm = fused_norm_});
  }

  // Adam: AdamW without the decay.
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    const auto options =
        torch::optim::AdamWOptions(settings_.learning_rate).betas({0.9, 0.95}).weight_decay(0);
    if (!fast_optimizer_) {
      return std::make_unique<Recorded<operators::FusedAdamW>>(std::move(parameters), options);
    }
    return std::make_unique<Recorded<operators::FastAdamW>>(std::move(parameters), options,
                                                            copies_);
  }

  Schedule::Factor schedule(int64_t total_steps) const override {
    return cosine_with_warm_up(total_steps, std::min(settings_.warm_up_steps, total_steps));
  }

  std::string in_words(double mean_loss) const override {
    auto text = fmt::format("{:.3f} relative L2 (climatology 1", mean_loss);
    if (marks_) {
      text += fmt::format(
          ", persistence {:.3f}, best forecast {:.3f}; of RMSE u10: climatology 1, persistence "
          "{:.3f}, best forecast {:.3f}",
          marks_->persistence_loss, marks_->perfect_loss, marks_->persistence_error,
          marks_->least_error);
    }
    return text + ")";
  }

  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    const auto forecast = are_narrow(products_) ? output.to(torch::kFloat) : output;
    return {relative_errors(forecast, target).sum(), target.count()};
  }

  std::vector<Metric> metrics() const override { return {{"RMSE u10", Metric::Of::root_of_ratio}}; }

  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto sum = weighted_square_errors(output, target).sum();
    return torch::stack({sum, torch::full({}, target.count(), sum.options())}).unsqueeze(0);
  }

  torch::Dtype type_;
  Products products_;
  bool fused_norm_, fast_optimizer_;
  mutable std::shared_ptr<operators::NarrowCopies> copies_;  // of the last model made
  Settings settings_;
  std::filesystem::path folder_;
  int64_t channels_ = 0, height_ = 0, width_ = 0;
  std::optional<Marks> marks_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<Weather>(options, Settings::from(config));
}

}  // namespace

Entry entry() {
  return {.name = "weather",
          .summary = "forecasts global weather fields with a vision transformer",
          .configs = built_in_configs(),
          .keys = Settings::keys(),
          .fast = {"norm", "optimizer"},
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::weather
