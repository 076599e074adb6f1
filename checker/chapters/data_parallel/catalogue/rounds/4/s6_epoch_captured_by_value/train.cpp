// Step 06: the finished trainer, with callbacks around each epoch.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

struct Callbacks {
  std::vector<std::function<void()>> at_start;
  std::vector<std::function<void()>> at_end;

  static void call(const std::vector<std::function<void()>>& all) {
    for (const auto& callback : all) callback();
  }
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
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

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  int64_t epoch = 0;
  tasks::Score trained, valid, best;

  // Copies of the sampler share their epoch, so the callback may hold one.
  Callbacks callbacks;
  callbacks.at_start.push_back([train_sampler, epoch]() mutable { train_sampler.set_epoch(epoch); });
  callbacks.at_end.push_back([&] { progress.report(trained, valid); });
  callbacks.at_end.push_back([&] {
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
  });
  callbacks.at_end.push_back([&] {
    if (!(valid < best)) return;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  });

  while (epoch < options.epochs && !progress.finished()) {
    Callbacks::call(callbacks.at_start);
    trained = train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    valid = evaluate(*task, model, *valid_loader, device);
    Callbacks::call(callbacks.at_end);
    ++epoch;
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
