// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The sizes of the problem: global ones from the command line, local ones from the world.
struct Extents {
  int64_t global_batch;
  int64_t local_batch;

  Extents(const tasks::Options& options, int ranks)
      : global_batch(options.batch_size),
        local_batch(std::max<int64_t>(1, (options.batch_size + ranks - 1) / ranks)) {}
};

using Visit = std::function<bool(const tasks::Batch&)>;

void for_each_batch(auto& loader, torch::Device device, const Visit& visit) {
  for (auto& batch : loader) {
    if (!visit(batch.to(device))) return;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  const Extents extents(options, world_size);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(extents.local_batch).drop_last(true);
  const auto batches = data::DataLoaderOptions(extents.local_batch);
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

  torch::Tensor totals;
  const Visit learn = [&](const tasks::Batch& batch) {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    return progress.step(loss);
  };
  const Visit judge = [&](const tasks::Batch& batch) {
    const torch::NoGradGuard no_grad;
    totals += task->loss(model->forward(batch.input), batch.target).totals();
    return true;
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    totals = task->no_totals(device);
    for_each_batch(*train_loader, device, learn);
    const auto trained = task->score(totals);

    model->eval();
    totals = task->no_totals(device);
    for_each_batch(*valid_loader, device, judge);
    const auto valid = task->score(totals);

    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  model->eval();
  totals = task->no_totals(device);
  for_each_batch(*test_loader, device, judge);
  const auto test = task->score(totals);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
