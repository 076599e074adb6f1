// Writing summaries of documents.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "clipped_adamw.hpp"
#include "data.hpp"
#include "settings.hpp"
#include "tasks/autocast.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"
#include "transformer.hpp"
#include "weights.hpp"

namespace tasks::summaries {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();  // called by the table of tasks

namespace {

class Summaries : public Task {
 public:
  Summaries(const Options& options, const Settings& settings)
      : Task(options.precision), settings_(settings), data_(load_data(options, settings)) {
    const auto words = data_.tokenizer->size();
    settings_.model.vocabulary = words;
    settings_.model.products = options.products;
    if (settings.weights) {
      weights_.emplace(*settings.weights);
      settings_.model.vocabulary = weights_->vocabulary();
      check_vocabulary(words);
    }
    baselines_.emplace_back("unigram",
                            unigram_cross_entropy(*data_.train, *data_.validation, words));
    if (data_.floor) baselines_.emplace_back("entropy floor", *data_.floor);
  }

  Baselines baselines() const override { return baselines_; }

 private:
  void check_vocabulary(int64_t words) const {
    if (words <= settings_.model.vocabulary) return;
    throw Error(
        fmt::format("{}: has an embedding of {} words, but the data have {}. Fix: set "
                    "'vocabulary_size: {}' in the configuration.",
                    settings_.weights->string(), settings_.model.vocabulary, words,
                    settings_.model.vocabulary));
  }

  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    return data_.split(split);
  }
  std::shared_ptr<Model> new_model() const override {
    auto model = std::make_shared<EncoderDecoder>(settings_.model);
    if (weights_) weights_->load_into(*model);
    return model;
  }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    const auto options =
        torch::optim::AdamWOptions(settings_.learning_rate).weight_decay(settings_.weight_decay);
    return std::make_unique<Recorded<ClippedAdamW>>(std::move(parameters), options,
                                                    settings_.clip_norm);
  }
  Schedule::Factor schedule(int64_t total_steps) const override {
    return cosine_with_warm_up(total_steps, std::clamp<int64_t>(settings_.warm_up_steps, 1,
                                                                std::max<int64_t>(total_steps, 1)));
  }
  std::string in_words(double mean_loss) const override {
    auto text =
        fmt::format("{:.4f} nats a word (perplexity {:.2f}", mean_loss, std::exp(mean_loss));
    const char* separator = "; ";
    for (const auto& [name, value] : baselines_) {
      text += fmt::format("{}{} {:.4f}", separator, name, value);
      separator = ", ";
    }
    return text + ")";
  }

  // output: logits [samples, target, vocabulary]; target: int64 [samples, target]. What pads has no
  // part in the sum, nor in the count.
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    const auto logits = are_narrow(settings_.model.products) ? output.to(torch::kFloat) : output;
    const auto sum = at::cross_entropy_loss(logits.flatten(0, 1), target.tensor().flatten(),
                                            /*weight=*/{}, at::Reduction::Sum, kPad);
    return {sum, target.count()};
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  // Of the words, each told those before it.
  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto& words = target.tensor();
    const auto right = output.argmax(-1).eq(words).logical_and(words.ne(kPad));
    const auto sum = right.sum().to(torch::kDouble);
    return at::stack({sum, at::full({}, target.count(), sum.options())}).unsqueeze(0);
  }

  Settings settings_;
  Data data_;
  std::optional<Weights> weights_;
  Baselines baselines_;
};

std::shared_ptr<Task> make(const Options& options, const Config& config) {
  return std::make_shared<Summaries>(options, Settings::from(config));
}

}  // namespace

Entry entry() {
  return {.name = "summaries",
          .summary = "summarises documents with an encoder-decoder",
          .configs = built_in_configs(),
          .keys = Settings::keys(),
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::summaries
