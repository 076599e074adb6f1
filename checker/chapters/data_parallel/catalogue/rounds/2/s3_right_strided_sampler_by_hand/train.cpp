#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <algorithm>

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

// Deals out like cards, without the library.
class Dealer : public data::samplers::Sampler<> {
 public:
  Dealer(size_t samples, const World& world, std::optional<uint64_t> shuffle_seed)
      : samples_(samples),
        rank_(static_cast<size_t>(world.rank)),
        ranks_(static_cast<size_t>(world.world_size)),
        seed_(shuffle_seed) {}

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    samples_ = new_size.value_or(samples_);
    if (seed_) {
      auto generator = torch::make_generator<at::CPUGeneratorImpl>(*seed_);
      order_ = torch::randperm(static_cast<int64_t>(samples_), generator, torch::kLong);
    } else {
      order_ = torch::arange(static_cast<int64_t>(samples_), torch::kLong);
    }
    // For training, all ranks have equally many; the rest is dropped.
    end_ = seed_ ? samples_ / ranks_ * ranks_ : samples_;
    at_ = rank_;
  }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> batch;
    const auto* order = order_.data_ptr<int64_t>();
    for (; at_ < end_ && batch.size() < batch_size; at_ += ranks_) {
      batch.push_back(static_cast<size_t>(order[at_]));
    }
    if (batch.empty()) return std::nullopt;
    return batch;
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t samples_, rank_, ranks_;
  std::optional<uint64_t> seed_;
  torch::Tensor order_;
  size_t at_ = 0, end_ = 0;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);

  auto train_loader = data::make_data_loader(
      train_set, Dealer(*train_set.size(), world, options.seed), train_batches);
  auto valid_loader =
      data::make_data_loader(valid_set, Dealer(*valid_set.size(), world, std::nullopt), batches);
  auto test_loader =
      data::make_data_loader(test_set, Dealer(*test_set.size(), world, std::nullopt), batches);

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
