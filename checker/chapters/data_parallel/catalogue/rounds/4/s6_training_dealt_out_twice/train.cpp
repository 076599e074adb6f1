// Step 06: the finished trainer.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Batches = std::vector<tasks::Batch>;

// Everything that the loader has, in memory: fetching does not disturb the steps then.
Batches fetch_all(auto& loader) {
  Batches all;
  for (auto& batch : loader) all.push_back(std::move(batch));
  return all;
}

// The batches that are for this rank: one of each round, so that all ranks take equally many steps.
Batches mine(const Batches& all, int rank, int world_size) {
  Batches own;
  const auto world = static_cast<size_t>(world_size);
  for (size_t round = 0; round + world <= all.size(); round += world)
    own.push_back(all[round + static_cast<size_t>(rank)]);
  return own;
}

tasks::Score over_all_ranks(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score train(const tasks::Task& task, auto& model, const Batches& batches, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (const auto& batch : batches) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return over_all_ranks(task, totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, const Batches& batches,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (const auto& batch : batches) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return over_all_ranks(task, totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  // These are the same in every epoch.
  const auto valid_batches = fetch_all(*valid_loader);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto own = mine(fetch_all(*train_loader), rank, world_size);
    const auto trained = train(*task, model, own, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, valid_batches, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, fetch_all(*test_loader), device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
