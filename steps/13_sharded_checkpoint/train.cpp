// Step 13: A checkpoint in parts.
//
// Each rank keeps a share of the model, but one rank writes the file: it receives the whole model,
// piece by piece, while the others wait. After this step each rank writes its own part. Any number
// of ranks can load the model and continue, with the optimizer's state.
//
// Run it: ./workbook run 13 --world 2
// Made by ./workbook render from checker/chapters/sharded_checkpoint/train.cpp; it is yours now.

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
  // TODO 43: Start from a saved model, at any number of ranks.
  //   If --from names a folder, load the model from it before the training begins.
  //
  //   options.from holds that folder, or nothing. load_sharded_model() copies the saved values into
  //   the model's parameters. A rank may need other parts than it saved: another number of ranks
  //   cuts the model in another way. Each rank looks up where its part is in the files, and reads
  //   only that.
  //
  //   This run starts from the model that another one has saved:
  //
  //       ./workbook run 13 --world 3 -- --from build/cpu/runs/13_sharded_checkpoint/model-best
  //
  //   Expect that its losses continue where those of the run before ended.

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
      // TODO 42: Let every rank write its part.
      //   Save the best model with save_sharded_model() instead of save0(), into the folder
      //   "model-best" of the output.
      //
      //   save0() makes one file. Rank 0 receives every parameter from the ranks that keep it, one
      //   after the other, and writes it. The others wait. With W ranks this takes up to W times as
      //   long as necessary.
      //
      //   save_sharded_model() sends no parameters. Each rank writes its part to its own file, with
      //   the place of that part in the whole model. All ranks call it: it is a collective.
      //
      //   A run may die while it saves. The model that it saved before must survive. So the folder
      //   gets its name only when all files in it are complete.
      //
      //   Expect a folder with a file of each rank. The final model stays one file, which any
      //   program can read.
      // TODO 44: Save and load the optimizer's state with the model.
      //   Give the optimizer to both calls: to the one that saves, here, and to the one that loads,
      //   above.
      //
      //   AdamW divides a mean of past gradients by the root of a mean of their squares. It
      //   corrects both for the number of steps so far. A new optimizer has none of this. Its first
      //   steps follow the first batches alone, each as long as the learning rate allows, and the
      //   loss jumps.
      //
      //   The ranks share the state as they share the parameters, so they save and load it in parts
      //   too. Load it into an optimizer that exists already and holds the current parameters.
      //
      //   Expect more files in the folder, twice as large, and no jump when a run continues.
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
