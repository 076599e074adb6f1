#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using Net = FullyShardedDataParallelImpl<tasks::Model>;

// The loss of a batch, with the parameters whole for just as long as the forward pass takes.
tasks::Loss loss_without_gradients(const tasks::Task& task, Net& net, const tasks::Batch& batch) {
  torch::NoGradGuard off;
  auto whole = net.summon_full_params();
  return task.loss(net.forward(batch.input), batch.target);
}

tasks::Loss loss_with_gradients(const tasks::Task& task, Net& net, const tasks::Batch& batch) {
  auto loss = task.loss(net.forward(batch.input), batch.target);
  loss.mean().backward();
  return loss;
}

tasks::Score summed(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto here = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler mixed(*train_set.size(),
                           {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_batches = torch::data::make_data_loader(
      train_set, mixed, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_batches = torch::data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}),
      torch::data::DataLoaderOptions(options.batch_size));
  auto test_batches = torch::data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
      torch::data::DataLoaderOptions(options.batch_size));

  auto module = task->make_model();
  module->to(here.device);
  auto net = std::make_shared<Net>(
      module, FullyShardedDataParallelOptions{.units = module->blocks(), .forward_prefetch = 1});
  auto optimizer = task->make_optimizer(net->parameters());
  tasks::Progress progress(options, *train_set.size());
  auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& batches) {
    net->eval();
    auto totals = task->no_totals(here.device);
    for (auto& batch : batches) {
      totals += loss_without_gradients(*task, *net, batch.to(here.device)).totals();
    }
    return summed(*task, totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    mixed.set_epoch(epoch);
    net->train();
    auto totals = task->no_totals(here.device);
    for (auto& batch : *train_batches) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& b) {
        optimizer->zero_grad();
        auto l = loss_with_gradients(*task, *net, b.to(here.device));
        optimizer->step();
        return l;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = summed(*task, totals);
    const auto valid = evaluate(*valid_batches);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*net, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*test_batches);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*net, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
