#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <algorithm>
#include <numeric>
#include <random>

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto output = model->forward(input);
    totals += task.loss(output, target).totals();
  }
  return task.score(totals);
}

// Shuffles all indices, keeps this rank's, and gives them out batch by batch.
class ShareSampler : public data::samplers::Sampler<> {
 public:
  ShareSampler(size_t samples, bool shuffle)
      : samples_(samples), shuffle_(shuffle), random_(std::random_device{}()) {}

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    samples_ = new_size.value_or(samples_);
    std::vector<size_t> all(samples_);
    std::iota(all.begin(), all.end(), 0);
    if (shuffle_) {
      std::shuffle(all.begin(), all.end(), random_);
      all.resize(all.size() / ranks_ * ranks_);
    }
    mine_.clear();
    for (size_t i = rank_; i < all.size(); i += ranks_) mine_.push_back(all[i]);
    next_ = 0;
  }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (next_ == mine_.size()) return std::nullopt;
    const auto from = mine_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ = std::min(next_ + batch_size, mine_.size());
    return std::vector<size_t>(from, mine_.begin() + static_cast<std::ptrdiff_t>(next_));
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t samples_;
  bool shuffle_;
  std::mt19937_64 random_;
  size_t rank_ = static_cast<size_t>(get_rank());
  size_t ranks_ = static_cast<size_t>(get_world_size());
  std::vector<size_t> mine_;
  size_t next_ = 0;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);

  auto train_loader =
      data::make_data_loader(train_set, ShareSampler(*train_set.size(), true), train_batches);
  auto valid_loader =
      data::make_data_loader(valid_set, ShareSampler(*valid_set.size(), false), batches);
  auto test_loader =
      data::make_data_loader(test_set, ShareSampler(*test_set.size(), false), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
