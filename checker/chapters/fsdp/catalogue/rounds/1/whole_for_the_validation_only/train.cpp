// One pass over a loader, for training and for evaluation. What is special about an epoch's end
// stands in main().
#include <torch/torch.h>

#include <functional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;

using Visit = std::function<std::pair<tasks::Loss, bool>(const tasks::Batch&)>;

tasks::Score pass(const tasks::Task& task, auto& loader, torch::Device device,
                  const Visit& visit) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [loss, goes_on] = visit(batch);
    totals += loss.totals();
    if (!goes_on) break;
  }
  all_reduce(totals, ReduceOp::SUM);
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
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = torch::data::make_data_loader(
      train_set, train_sampler,
      torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, valid_sampler, torch::data::DataLoaderOptions(options.batch_size));
  auto test_loader = torch::data::make_data_loader(
      test_set, test_sampler, torch::data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = FullyShardedDataParallel(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto there = batch.to(world.device);
    return task->loss(model->forward(there.input), there.target);
  };
  const Visit learn = [&](const tasks::Batch& batch) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& given) {
      optimizer->zero_grad();
      const auto value = loss_of(given);
      value.mean().backward();
      optimizer->step();
      return value;
    });
    schedule->step();
    return std::pair(loss, progress.step(loss));
  };
  const Visit look = [&](const tasks::Batch& batch) {
    const torch::NoGradGuard no_grad;
    return std::pair(loss_of(batch), true);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const auto trained = pass(*task, *train_loader, world.device, learn);
    model->eval();
    const auto summoned = model->summon_full_params();
    const auto valid = pass(*task, *valid_loader, world.device, look);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  model->eval();
  const auto test = pass(*task, *test_loader, world.device, look);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
