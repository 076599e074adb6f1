// Step 08: DistributedDataParallel from the inside.
//
// The finished trainer again, but its DistributedDataParallel is yours to write: DataParallel in
// ddp.hpp. Begin with what is right and slow. At the end gradients travel in buckets while
// backward() still computes.
//
// Run it: ./workbook run 08 --world 2
// Made by ./workbook render from checker/chapters/inside_ddp/train.cpp; it is yours now.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "ddp.hpp"
#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, DataParallel& parallel,
                       auto& optimizer, const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  parallel.finish();
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
tasks::Score train(const tasks::Task& task, auto& model, DataParallel& parallel, auto& loader,
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress, tasks::Checkpointing& checkpoints) {
  model->train();
  auto totals = checkpoints.begin_epoch(task.no_totals(device));
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      return train_step(task, model, parallel, optimizer, taken, device);
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
    checkpoints.step(totals);
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
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
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  // Each rank draws its own numbers, so that no two of them drop out the same. It also draws its
  // own weights.
  torch::manual_seed(options.seed + static_cast<uint64_t>(rank));

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

  const auto model = task->make_model();
  model->to(device);
  DataParallel parallel(*model);
  tasks::Checkpointing checkpoints(options);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (int64_t epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(*task, model, parallel, *train_loader, *optimizer, *schedule, device,
                               progress, checkpoints);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
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
