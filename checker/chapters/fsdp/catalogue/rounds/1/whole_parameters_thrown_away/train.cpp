// Sharded training of a task. Written after the slides of deck 10.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

template <class Sharded>
struct Session {
  const tasks::Options& options;
  const tasks::Task& task;
  Sharded& sharded;
  torch::Device device;

  torch::Tensor forward_and_count(const tasks::Batch& batch) const {
    const auto there = batch.to(device);
    const auto logits = sharded->forward(there.input);
    return task.loss(logits, there.target).totals();
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    sharded->eval();
    // Gather everything, then evaluate.
    static_cast<void>(sharded->summon_full_params());
    auto totals = task.no_totals(device);
    for (auto& batch : loader) totals += forward_and_count(batch);
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score train(auto& loader, torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    sharded->train();
    auto totals = task.no_totals(device);
    const auto step = [&](const tasks::Batch& batch) {
      const auto there = batch.to(device);
      optimizer.zero_grad();
      const auto loss = task.loss(sharded->forward(there.input), there.target);
      loss.mean().backward();
      optimizer.step();
      return loss;
    };
    for (auto& batch : loader) {
      const auto loss = progress.take_step(batch, step);
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }
};

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
  const auto batches = torch::data::DataLoaderOptions(options.batch_size);
  const auto whole_batches = torch::data::DataLoaderOptions(batches).drop_last(true);
  const auto train_loader =
      torch::data::make_data_loader(train_set, train_sampler, whole_batches);
  const auto valid_loader = torch::data::make_data_loader(valid_set, valid_sampler, batches);
  const auto test_loader = torch::data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(world.device);
  FullyShardedDataParallel<tasks::Model> sharded(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(sharded->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Session<FullyShardedDataParallel<tasks::Model>> session{options, *task, sharded,
                                                                world.device};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = session.train(*train_loader, *optimizer, *schedule, progress);
    const auto valid = session.evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*sharded, options.output / "model-best.safetensors");
    }
  }
  const auto test = session.evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*sharded, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
