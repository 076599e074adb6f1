//@header
#include <fmt/format.h>  //@include.fmt
#include <torch/torch.h>  //@include.torch

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#if OWN_DDP
#include "ddp.hpp"  //@include.ddp
#endif
#include "distributed_utils/distributed_utils.hpp"  //@include.distributed_utils

using namespace distributed_utils;  //@using.distributed_utils

namespace data = torch::data;  //@namespace.data

// Takes one training step and returns the batch's loss.
#if OWN_DDP
tasks::Loss train_step(const tasks::Task& task, auto& model, DataParallel& parallel,
                       auto& optimizer, const tasks::Batch& batch, torch::Device device) {
#else
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
#endif
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();  //@train.zero_grad
  const auto output = model->forward(input);  //@train.forward
  const auto loss = task.loss(output, target);  //@train.loss
  loss.mean().backward();  //@train.backward
#if OWN_DDP
  parallel.finish();  //@train.finish
#endif
  optimizer.step();  //@train.step
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
#if OWN_DDP
tasks::Score train(const tasks::Task& task, auto& model, DataParallel& parallel, auto& loader,  //@train
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device,  //@train
                   tasks::Progress& progress, tasks::Checkpointing& checkpoints) {  //@train
#else
tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,  //@train
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress,  //@train
                   tasks::Checkpointing& checkpoints) {  //@train
#endif
  model->train();
  auto totals = checkpoints.begin_epoch(task.no_totals(device));
  for (auto& batch : loader) {  //@train.batches
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {  //@train.take_step
#if OWN_DDP
      return train_step(task, model, parallel, optimizer, taken, device);  //@train.take_step
#else
      return train_step(task, model, optimizer, taken, device);  //@train.take_step
#endif
    });  //@train.take_step
    schedule.step();  //@train.schedule
    totals += loss.totals();  //@train.add
    if (!progress.step(loss)) break;  //@train.progress
    checkpoints.step(totals);
  }
  all_reduce(totals, ReduceOp::SUM);  //@train.all_reduce
  return task.score(totals);  //@train.return
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {  //@evaluate
  const torch::NoGradGuard no_grad;
  model->eval();  //@evaluate.mode
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
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);  //@apply_options

  const auto [rank, local_rank, world_size, device] =  //@setup
      setup({.backend = options.backend, .device = options.device});  //@setup
#if OWN_DDP
  // Each rank draws its own numbers, so that no two of them drop out the same. It also draws its
  // own weights.
  torch::manual_seed(options.seed + static_cast<uint64_t>(rank));  //@seed
#endif

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

#if OWN_DDP
  const auto model = task->make_model();  //@model
  model->to(device);  //@model.to
  DataParallel parallel(*model);  //@parallel
  tasks::Checkpointing checkpoints(options);
#else
  const auto module = task->make_model();  //@module
  module->to(device);  //@module.to
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
#endif
  const auto optimizer = task->make_optimizer(model->parameters());  //@optimizer

  tasks::Progress progress(options, *train_set.size());  //@progress
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());  //@schedule
  tasks::Score best;  //@best_loss
  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (int64_t epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {  //@epochs
    train_sampler.set_epoch(epoch);  //@set_epoch
#if OWN_DDP
    const auto trained = train(*task, model, parallel, *train_loader, *optimizer, *schedule, device,  //@train_loss
                               progress, checkpoints);  //@train_loss
#else
    const auto trained =  //@train_loss
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress, checkpoints);  //@train_loss
#endif
    const auto valid = evaluate(*task, model, *valid_loader, device);  //@valid_loss
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);  //@report
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,  //@print.epoch
           task->format(trained), task->format(valid));  //@print.epoch
    if (valid < best) {  //@best
      best = valid;
      save0(*model, options.output / "model-best.safetensors");  //@save.best
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
