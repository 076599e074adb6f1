// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The usual block decomposition of the loop 0 ... total-1: [begin, end) is this rank's.
struct Stretch {
  int64_t begin;
  int64_t end;

  static Stretch of(int64_t total, const World& world) {
    return {total * world.rank / world.world_size, total * (world.rank + 1) / world.world_size};
  }
};

tasks::Loss loss_of(const tasks::Task& task, auto& model, const tasks::Batch& batch,
                    torch::Device device) {
  const auto [input, target] = batch.to(device);
  return task.loss(model->forward(input), target);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) totals += loss_of(*task, model, batch, world.device).totals();
    return task->score(totals);
  };

  // The outermost loop is the one to parallelise: each rank has its block of the epochs.
  tasks::Score best;
  const Stretch mine = Stretch::of(options.epochs, world);
  for (int64_t epoch = mine.begin; epoch < mine.end && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(*task, model, batch, world.device);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
