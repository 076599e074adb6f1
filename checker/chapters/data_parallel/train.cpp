//@header
#include <fmt/format.h>  //@include.fmt
#include <torch/torch.h>  //@include.torch

#if CHECKPOINT
#include "tasks/checkpointing.hpp"
#endif
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

//@todo 1
#if INCLUDE
#include "distributed_utils/distributed_utils.hpp"  //@include.distributed_utils

using namespace distributed_utils;  //@using.distributed_utils

#endif
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
#if CHECKPOINT
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress,  //@train
                   tasks::Checkpointing& checkpoints) {  //@train
  model->train();
  auto totals = checkpoints.begin_epoch(task.no_totals(device));
#else
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {  //@train
  model->train();  //@train.mode
  auto totals = task.no_totals(device);  //@train.totals
#endif
  for (auto& batch : loader) {  //@train.batches
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {  //@train.take_step
      return train_step(task, model, optimizer, taken, device);  //@train.take_step
    });  //@train.take_step
    schedule.step();
    totals += loss.totals();  //@train.add
    if (!progress.step(loss)) break;  //@train.progress
#if CHECKPOINT
    checkpoints.step(totals);
#endif
  }
  //@todo 10
#if ALL_REDUCE
  all_reduce(totals, ReduceOp::SUM);  //@train.all_reduce
#endif
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
  //@todo 10
#if ALL_REDUCE
  all_reduce(totals, ReduceOp::SUM);  //@evaluate.all_reduce
#endif
  return task.score(totals);  //@evaluate.return
}

int main(int argc, char** argv) try {  //@main
#if CHECKPOINT
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
#else
  const auto options = tasks::parse_options(argc, argv);
#endif
  tasks::apply(options);  //@apply_options

  //@todo 2
  //@todo 3
#if SETUP
  const auto [rank, local_rank, world_size, device] =  //@setup
      setup({.backend = options.backend, .device = options.device});  //@setup
#else
  const torch::Device device = options.device.value_or(
      torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU));
#endif

  const auto task = tasks::make_task(options);  //@task
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");  //@test_set

  //@todo 4
#if SAMPLER
  DistributedSampler train_sampler(*train_set.size(),  //@train_sampler
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});  //@train_sampler
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});  //@valid_sampler
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});  //@test_sampler
#endif

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);  //@train_batches
  const auto batches = data::DataLoaderOptions(options.batch_size);
  //@todo 5
#if TRAIN_LOADER
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);  //@train_loader
#else
  auto train_loader = data::make_data_loader(  //@train_loader
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);  //@train_loader
#endif
  //@todo 6
#if VALID_LOADER
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);  //@valid_loader
#else
  auto valid_loader = data::make_data_loader(  //@valid_loader
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);  //@valid_loader
#endif
  //@todo 7
#if TEST_LOADER
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);  //@test_loader
#else
  auto test_loader = data::make_data_loader(  //@test_loader
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);  //@test_loader
#endif

  const auto module = task->make_model();  //@module
  module->to(device);  //@module.to
  //@todo 8
#if DDP
#if CHECKPOINT
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
#else
  const auto model = DistributedDataParallel(module);  //@model
#endif
#else
  const auto model = module;  //@model
#endif
  const auto optimizer = task->make_optimizer(model->parameters());  //@optimizer

  tasks::Progress progress(options, *train_set.size());  //@progress
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;  //@best_loss
#if CHECKPOINT
  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (int64_t epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {
#else
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {  //@epochs
#endif
    //@todo 9
#if SET_EPOCH
    train_sampler.set_epoch(epoch);  //@set_epoch
#endif
#if CHECKPOINT
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress, checkpoints);
#else
    const auto trained =  //@train_loss
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);  //@train_loss
#endif
    const auto valid = evaluate(*task, model, *valid_loader, device);  //@valid_loss
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);  //@report
    //@todo 11
#if PRINT0
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,  //@print.epoch
           task->format(trained), task->format(valid));  //@print.epoch
#else
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
#endif
    if (valid < best) {  //@best
      best = valid;
      //@todo 12
#if SAVE0
      save0(*model, options.output / "model-best.safetensors");  //@save.best
#else
      torch::save(model, options.output / "model-best.pt");  //@save.best
#endif
    }  //@best.end
  }

  const auto test = evaluate(*task, model, *test_loader, device);  //@test_loss
  progress.report(test);  //@report.test
  //@todo 11
#if PRINT0
  print0("best validation loss: {}", task->describe(best));  //@print.best
  print0("test loss: {}", task->describe(test));  //@print.test
#else
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
#endif
  //@todo 12
#if SAVE0
  save0(*model, options.output / "model-final.safetensors");  //@save.final
#else
  torch::save(model, options.output / "model-final.pt");  //@save.final
#endif
  //@todo 13
#if DESTROY
  destroy_process_group();  //@destroy
#endif
  return 0;  //@return
} catch (const std::exception& error) {  //@catch
  return tasks::report(error);
}
