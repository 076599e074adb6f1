//@header
#include <fmt/format.h>  //@include.fmt
#include <torch/torch.h>  //@include.torch

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"  //@include.distributed_utils

using namespace distributed_utils;  //@using.distributed_utils

namespace data = torch::data;  //@namespace.data

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();  //@train.zero_grad
  const auto output = model->forward(input);  //@train.forward
  const auto loss = task.loss(output, target);  //@train.loss
  loss.mean().backward();  //@train.backward
  optimizer.step();  //@train.step
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,  //@train
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {  //@train
  model->train();  //@train.mode
  auto totals = task.no_totals(device);  //@train.totals
  for (auto& batch : loader) {  //@train.batches
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {  //@train.take_step
      return train_step(task, model, optimizer, taken, device);  //@train.take_step
    });  //@train.take_step
    schedule.step();
    totals += loss.totals();  //@train.add
    if (!progress.step(loss)) break;  //@train.progress
  }
  all_reduce(totals, ReduceOp::SUM);  //@train.all_reduce
  return task.score(totals);  //@train.return
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {  //@evaluate
  const torch::NoGradGuard no_grad;
  model->eval();  //@evaluate.mode
  const auto whole = model->summon_full_params();  //@evaluate.whole
  auto totals = task.no_totals(device);  //@evaluate.totals
  for (auto& batch : loader) {  //@evaluate.batches
    const auto [input, target] = batch.to(device);  //@evaluate.take
    const auto output = model->forward(input);  //@evaluate.forward
    totals += task.loss(output, target).totals();  //@evaluate.add
  }
  all_reduce(totals, ReduceOp::SUM);  //@evaluate.all_reduce
  return task.score(totals);  //@evaluate.return
}

int main(int argc, char** argv) try {  //@main
#if STARTS
  const auto options = tasks::parse_options(argc, argv, {.starts = true});
#else
  const auto options = tasks::parse_options(argc, argv);
#endif
  tasks::apply(options);  //@apply_options

  const auto [rank, local_rank, world_size, device] =  //@setup
      setup({.backend = options.backend, .device = options.device});  //@setup

  const auto task = tasks::make_task(options);  //@task
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");  //@test_set

  DistributedSampler train_sampler(*train_set.size(),  //@train_sampler
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});  //@train_sampler
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});  //@valid_sampler
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});  //@test_sampler

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);  //@train_batches
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);  //@train_loader
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);  //@valid_loader
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);  //@test_loader

  const auto module = task->make_model();  //@module
  module->to(device);  //@module.to
  const auto model = FullyShardedDataParallel(module, {.units = module->blocks()});  //@model
  const auto optimizer = task->make_optimizer(model->parameters());  //@optimizer
  //@todo 43
#if FROM
#if STATE
  if (options.from) load_sharded_model(*model, *optimizer, *options.from);  //@load
#else
  if (options.from) load_sharded_model(*model, *options.from);  //@load
#endif
#endif

  tasks::Progress progress(options, *train_set.size());  //@progress
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;  //@best_loss
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {  //@epochs
    train_sampler.set_epoch(epoch);  //@set_epoch
    const auto trained =  //@train_loss
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);  //@train_loss
    const auto valid = evaluate(*task, model, *valid_loader, device);  //@valid_loss
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);  //@report
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,  //@print.epoch
           task->format(trained), task->format(valid));  //@print.epoch
    if (valid < best) {  //@best
      best = valid;
      //@todo 42
      //@todo 44
#if SHARDS
#if STATE
      save_sharded_model(*model, *optimizer, options.output / "model-best");  //@save.best
#else
      save_sharded_model(*model, options.output / "model-best");  //@save.best
#endif
#else
      save0(*model, options.output / "model-best.safetensors");  //@save.best
#endif
    }  //@best.end
  }

  const auto test = evaluate(*task, model, *test_loader, device);  //@test_loss
  progress.report(test);  //@report.test
  print0("best validation loss: {}", task->describe(best));  //@print.best
  print0("test loss: {}", task->describe(test));  //@print.test
  save0(*model, options.output / "model-final.safetensors");  //@save.final
  destroy_process_group();  //@destroy
  return 0;  //@return
} catch (const std::exception& error) {  //@catch
  return tasks::report(error);
}
