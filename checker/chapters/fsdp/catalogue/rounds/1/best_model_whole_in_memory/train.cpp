// The best model stays in memory, and goes to the disk once, at the end.
#include <torch/torch.h>

#include <optional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;

struct Winner {
  tasks::Score score;
  StateDict weights;

  // Every rank remembers, so that none has to ask another one later.
  void consider(const tasks::Score& candidate, auto& model) {
    if (!(candidate < score)) return;
    score = candidate;
    const torch::NoGradGuard no_grad;
    const auto whole = model->summon_full_params();
    weights = state_dict(*model->module());
    for (auto& [name, tensor] : weights) tensor = tensor.clone();
  }
};

tasks::Score learn(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   auto& schedule, auto& progress, torch::Device device) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& host) {
      const auto [x, y] = host.to(device);
      optimizer.zero_grad();
      const auto l = task.loss(model->forward(x), y);
      l.mean().backward();
      optimizer.step();
      return l;
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals);
  return task.score(totals);
}

tasks::Score grade(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const auto whole = model->summon_full_params();
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [x, y] = batch.to(device);
    totals += task.loss(model->forward(x), y).totals();
  }
  all_reduce(totals);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler shuffled(*train_set.size(),
                              {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto batches = torch::data::DataLoaderOptions(options.batch_size);
  auto train_loader = torch::data::make_data_loader(
      train_set, shuffled, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}), batches);
  auto test_loader = torch::data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}), batches);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = FullyShardedDataParallel(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Winner winner;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    shuffled.set_epoch(epoch);
    const auto learned =
        learn(*task, model, *train_loader, *optimizer, *schedule, progress, world.device);
    const auto graded = grade(*task, model, *valid_loader, world.device);
    progress.report(learned, graded);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(learned), task->format(graded));
    winner.consider(graded, model);
  }
  const auto test = grade(*task, model, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(winner.score));
  print0("test loss: {}", task->describe(test));
  if (world.rank == 0) save_file(winner.weights, options.output / "model-best.safetensors");
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
