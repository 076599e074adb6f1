// Solution of step 13: A checkpoint in parts.
//
// Each rank keeps a share of the model, but one rank writes the file: it receives the whole model,
// piece by piece, while the others wait. After this step each rank writes its own part. Any number
// of ranks can load the model and continue, with the optimizer's state.
//
// Run it: ./workbook run 13 --world 2 --solution
// Made by ./workbook render from checker/chapters/sharded_checkpoint/train.cpp.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      return train_step(task, model, optimizer, taken, device);
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  const auto whole = model->summon_full_params();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto output = model->forward(input);
    totals += task.loss(output, target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.starts = true});
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

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = FullyShardedDataParallel(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());
  // TODO 43: a run starts from a saved model, whatever the number of ranks.
  if (options.from) load_sharded_model(*model, *optimizer, *options.from);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      // TODO 42: each rank writes its own part of the best model.
      // TODO 44: the optimizer continues with its saved state.
      save_sharded_model(*model, *optimizer, options.output / "model-best");
    }
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
