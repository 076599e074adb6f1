// Step 05 with scores that are reduced when somebody first reads them.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <optional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// The score of a pass over all ranks' data. Nothing travels for a score that nobody reads.
class LazyScore {
 public:
  LazyScore(const tasks::Task& task, torch::Tensor totals)
      : task_(task), totals_(std::move(totals)) {}

  const tasks::Score& value() {
    if (!value_) {
      all_reduce(totals_, ReduceOp::SUM);
      value_ = task_.score(totals_);
    }
    return *value_;
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  std::optional<tasks::Score> value_;
};

/// How validation went so far, for plots; rank 0 keeps it.
class History {
 public:
  void epoch_ended(LazyScore& valid) {
    if (get_rank() == 0) losses_.push_back(valid.value());
  }

 private:
  std::vector<double> losses_;
};

template <typename Train, typename Evaluate>
struct Experiment {
  const tasks::Task& task;
  const tasks::Options& options;
  tasks::Progress& progress;
  Train train;                              // of an epoch's number
  Evaluate evaluate;                        // of a split's name
  std::function<void(const char*)> save;    // a file's name
  History history = {};
  tasks::Score best = {};

  void epoch(int64_t number) {
    LazyScore trained = train(number);
    LazyScore valid = evaluate("validation");
    history.epoch_ended(valid);
    const auto training_loss = trained.value();
    const auto validation_loss = valid.value();
    progress.report(training_loss, validation_loss);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", number + 1, options.epochs,
                 task.format(training_loss), task.format(validation_loss));
    if (validation_loss < best) {
      best = validation_loss;
      save("model-best.pt");
    }
  }

  void run() {
    for (int64_t number = 0; number < options.epochs && !progress.finished(); ++number) {
      epoch(number);
    }
    const auto test = evaluate("test").value();
    progress.report(test);
    fmt::println("best validation loss: {}", task.describe(best));
    fmt::println("test loss: {}", task.describe(test));
    save("model-final.pt");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, world_device] =
      setup({.backend = options.backend, .device = options.device});
  const auto device = world_device;
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  auto train = [&](int64_t epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return LazyScore(*task, totals);
  };
  auto evaluate = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task->dataset(split);
    auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    auto totals = task->no_totals(device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return LazyScore(*task, totals);
  };
  Experiment<decltype(train), decltype(evaluate)> experiment{
      .task = *task,
      .options = options,
      .progress = progress,
      .train = train,
      .evaluate = evaluate,
      .save = [&](const char* name) { torch::save(model, options.output / name); }};
  experiment.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
