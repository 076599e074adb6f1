// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The three splits, read together.
struct Splits {
  std::shared_ptr<tasks::Task> task;
  tasks::Dataset train, valid, test;

  static Splits read(const tasks::Options& options) {
    auto task = tasks::make_task(options);
    auto train = task->dataset("train");
    auto valid = task->dataset("validation");
    auto test = task->dataset("test");
    return {std::move(task), std::move(train), std::move(valid), std::move(test)};
  }
};

// Our file system dislikes it when all processes of a node open the same files at once: within a
// node they go one after the other. Every rank passes every barrier.
Splits read_in_turn(const tasks::Options& options, const World& world) {
  std::optional<Splits> splits;
  for (int turn = 0; turn < world.world_size; ++turn) {
    if (world.local_rank == turn) splits.emplace(Splits::read(options));
    barrier();
  }
  return std::move(*splits);
}

tasks::Score train(const Splits& splits, auto& model, auto& loader, auto& optimizer, auto& schedule,
                   const World& world, tasks::Progress& progress) {
  model->train();
  auto totals = splits.task->no_totals(world.device);
  bool go_on = true;
  for (auto batch = loader.begin(); go_on && batch != loader.end();) {
    const auto [input, target] = batch->to(world.device);
    optimizer.zero_grad();
    const auto loss = splits.task->loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    go_on = progress.step(loss);
    if (go_on) ++batch;
  }
  return splits.task->score(totals);
}

tasks::Score evaluate(const Splits& splits, auto& model, auto& loader, const World& world) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = splits.task->no_totals(world.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(world.device);
    totals += splits.task->loss(model->forward(input), target).totals();
  }
  return splits.task->score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const Splits splits = read_in_turn(options, world);
  const auto& task = *splits.task;

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      splits.train, data::samplers::RandomSampler(*splits.train.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      splits.valid, data::samplers::SequentialSampler(*splits.valid.size()), batches);
  auto test_loader = data::make_data_loader(
      splits.test, data::samplers::SequentialSampler(*splits.test.size()), batches);

  const auto model = task.make_model();
  model->to(world.device);
  const auto optimizer = task.make_optimizer(model->parameters());

  tasks::Progress progress(options, *splits.train.size());
  const auto schedule = task.make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(splits, model, *train_loader, *optimizer, *schedule, world, progress);
    const auto valid = evaluate(splits, model, *valid_loader, world);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task.format(trained), task.format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(splits, model, *test_loader, world);
  progress.report(test);
  fmt::println("best validation loss: {}", task.describe(best));
  fmt::println("test loss: {}", task.describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
