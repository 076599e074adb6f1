// Next-word prediction: the task that the course starts with.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/optim/adamw.h>

#include <cmath>

#include "data.hpp"
#include "settings.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"
#include "transformer.hpp"
#include "windows.hpp"

namespace tasks::language_model {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
Entry entry();                                  // called by the table of tasks

namespace {

class LanguageModel : public Task {
 public:
  LanguageModel(const Options& options, const Settings& settings)
      : Task(options.precision), settings_(settings), data_(load_data(options, settings)) {
    marks_.emplace_back("unigram",
                        unigram_cross_entropy(data_.train, data_.validation, data_.vocabulary));
    if (data_.floor) marks_.emplace_back("entropy floor", *data_.floor);
  }

  Dataset dataset(Split split) const override {
    const auto stride = split == Split::train ? settings_.stride : settings_.sequence_length;
    return {split,
            std::make_shared<Windows>(data_.split(split), settings_.sequence_length, stride)};
  }

  Marks marks() const override { return marks_; }

 private:
  std::string in_words(double mean_loss) const override {
    std::string text =
        fmt::format("{:.3f} nats a word (perplexity {:.1f}", mean_loss, std::exp(mean_loss));
    const char* separator = "; ";
    for (const auto& [name, value] : marks_) {
      text += fmt::format("{}{} {:.3f}", separator, name, value);
      separator = ", ";
    }
    return text + ")";
  }

  std::shared_ptr<Model> new_model() const override {
    return std::make_shared<Transformer>(
        TransformerOptions{.vocabulary = data_.vocabulary,
                           .sequence_length = settings_.sequence_length,
                           .width = settings_.width,
                           .heads = settings_.heads,
                           .layers = settings_.layers,
                           .feed_forward = settings_.feed_forward,
                           .dropout = settings_.dropout});
  }

  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<torch::optim::AdamW>>(
        std::move(parameters),
        torch::optim::AdamWOptions(settings_.learning_rate).weight_decay(settings_.weight_decay));
  }

  // output: logits [batch, sequence, vocabulary]; target: int64 [batch, sequence].
  Loss compute_loss(const torch::Tensor& output, const torch::Tensor& target) const override {
    const auto sum = at::cross_entropy_loss(output.flatten(0, 1), target.flatten(), /*weight=*/{},
                                            at::Reduction::Sum);
    return {sum, target.numel()};
  }

  Settings settings_;
  Data data_;
  Marks marks_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<LanguageModel>(options, Settings::from(config));
}

}  // namespace

Entry entry() {
  return {.name = "language_model",
          .summary = "predicts the next word with a causal transformer",
          .configs = built_in_configs(),
          .keys = Settings::keys(),
          .make = &make};
}

}  // namespace tasks::language_model
