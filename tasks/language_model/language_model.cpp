// Next-word prediction: the task that the course starts with.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data.hpp"
#include "fast.hpp"
#include "operators/adamw.hpp"
#include "operators/linear_cross_entropy.hpp"
#include "operators/narrow_copies.hpp"
#include "settings.hpp"
#include "tasks/autocast.hpp"
#include "tasks/recorded.hpp"
#include "tasks/registry.hpp"
#include "transformer.hpp"
#include "windows.hpp"

namespace tasks::language_model {

std::vector<BuiltInConfig> built_in_configs();  // made by CMake from configs/*.yaml
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);
Entry entry();  // called by the table of tasks

namespace {

FastParts fast_parts_for(const Options& options) {
  const auto asked = [&](std::string_view part) { return options.fast.has(part); };
  if (options.products == Products::fp16 && std::ranges::any_of(fast_names(), asked)) {
    throw Error(
        "--precision fp16 with --fast: the language model's fast parts do not support fp16; use "
        "one of the two");
  }
  return fast_parts(options.fast);
}

class LanguageModel : public Task {
 public:
  LanguageModel(const Options& options, const Settings& settings)
      : Task(options.precision),
        products_(options.products),
        fast_(fast_parts_for(options)),
        batch_size_(options.batch_size),
        settings_(settings),
        data_(load_data(options, settings)) {
    baselines_.emplace_back("unigram",
                            unigram_cross_entropy(data_.train, data_.validation, data_.vocabulary));
    if (data_.floor) baselines_.emplace_back("entropy floor", *data_.floor);
  }

  Baselines baselines() const override { return baselines_; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const override {
    const auto stride = split == "train" ? settings_.stride : settings_.sequence_length;
    return std::make_shared<Windows>(data_.split(split), settings_.sequence_length, stride);
  }
  std::string in_words(double mean_loss) const override {
    std::string text =
        fmt::format("{:.3f} nats a word (perplexity {:.1f}", mean_loss, std::exp(mean_loss));
    const char* separator = "; ";
    for (const auto& [name, value] : baselines_) {
      text += fmt::format("{}{} {:.3f}", separator, name, value);
      separator = ", ";
    }
    return text + ")";
  }

  std::shared_ptr<Model> new_model() const override {
    copies_ = make_copies();
    const auto model = std::make_shared<Transformer>(
        TransformerOptions{.vocabulary = data_.vocabulary,
                           .sequence_length = settings_.sequence_length,
                           .width = settings_.width,
                           .heads = settings_.heads,
                           .layers = settings_.layers,
                           .feed_forward = settings_.feed_forward,
                           .dropout = settings_.dropout,
                           .products = products_,
                           .copies = products_ == Products::bf16 ? copies_ : nullptr,
                           .unsorted_embedding = fast_.embedding,
                           .most_words = batch_size_ * settings_.sequence_length,
                           .fused_attention = fast_.attention,
                           .fused_norm = fast_.norm,
                           .fused_relu = fast_.relu,
                           .without_decoder = fast_.loss});
    model_ = model;
    return model;
  }

  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    const auto options =
        torch::optim::AdamWOptions(settings_.learning_rate).weight_decay(settings_.weight_decay);
    if (!fast_.optimizer) {
      return std::make_unique<Recorded<operators::FusedAdamW>>(std::move(parameters), options);
    }
    return std::make_unique<Recorded<operators::FastAdamW>>(std::move(parameters), options,
                                                            copies_);
  }

  // output: logits [batch, sequence, vocabulary], or, with the fast loss, what they are made of;
  // target: int64 [batch, sequence].
  Loss compute_loss(const torch::Tensor& output, const Target& given) const override {
    const torch::Tensor& target = given;
    if (fast_.loss) return fast_loss(output, target);
    const auto logits = are_narrow(products_) ? output.to(at::kFloat) : output;
    const auto sum = at::cross_entropy_loss(logits.flatten(0, 1), target.flatten(), /*weight=*/{},
                                            at::Reduction::Sum);
    return {sum, given.count()};
  }

  Loss fast_loss(const torch::Tensor& hidden, const torch::Tensor& target) const {
    const auto model = model_.lock();
    TORCH_CHECK(model, "with --fast=loss, a task computes the loss of the last model it made only");
    const auto& decoder = model->decoder();
    const auto sum =
        operators::linear_cross_entropy(hidden.flatten(0, 1), decoder->weight, decoder->bias,
                                        target.flatten(), {.copies = copies_.get()});
    return {sum, target.numel()};
  }

  // For bf16, all weights; for TF32 those of the decoder, in fp16, which keeps as many digits as
  // TF32 in half the memory.
  std::shared_ptr<operators::NarrowCopies> make_copies() const {
    if (products_ == Products::bf16 && (fast_.loss || fast_.optimizer)) {
      return std::make_shared<operators::NarrowCopies>(torch::kBFloat16);
    }
    if (products_ == Products::tf32 && fast_.loss) {
      return std::make_shared<operators::NarrowCopies>(torch::kHalf);
    }
    return nullptr;
  }

  Products products_;
  FastParts fast_;
  int64_t batch_size_;
  // Of the last model made, for what needs more of it than its output.
  mutable std::weak_ptr<Transformer> model_;
  mutable std::shared_ptr<operators::NarrowCopies> copies_;
  Settings settings_;
  Data data_;
  Baselines baselines_;
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
          .fast = fast_names(),
          .make = &make,
          .secret = &make_secret};
}

}  // namespace tasks::language_model
