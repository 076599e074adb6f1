// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  // Rank and size, as MPI_Comm_rank and MPI_Comm_size give them, then what belongs to the node.
  const auto [rank, world_size, local_rank, device] =
      setup({.backend = options.backend, .device = options.device});

  // All ranks write the same files, so they write one after the other: rank 0, rank 1, ...
  const auto in_turn = [rank = rank, world_size = world_size](auto&& action) {
    for (int turn = 0; turn < world_size; ++turn) {
      if (turn == rank) action();
      barrier();
    }
  };

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
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    // --- training ---
    model->train();
    auto train_totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto moved = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(moved.input), moved.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(train_totals);

    // --- validation ---
    model->eval();
    auto valid_totals = task->no_totals(device);
    for (auto& batch : *valid_loader) {
      const torch::NoGradGuard no_grad;
      const auto moved = batch.to(device);
      valid_totals += task->loss(model->forward(moved.input), moved.target).totals();
    }
    const auto valid = task->score(valid_totals);

    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      in_turn([&] { torch::save(model, options.output / "model-best.pt"); });
    }
  }

  // --- test ---
  model->eval();
  auto test_totals = task->no_totals(device);
  for (auto& batch : *test_loader) {
    const torch::NoGradGuard no_grad;
    const auto moved = batch.to(device);
    test_totals += task->loss(model->forward(moved.input), moved.target).totals();
  }
  const auto test = task->score(test_totals);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  in_turn([&] { torch::save(model, options.output / "model-final.pt"); });
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
