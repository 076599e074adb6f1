// Step 03: Each rank gets its share of the data.
//
// The ranks know each other, but each one still works through all the data. After this step each
// rank sees its own part of the data. With more ranks an epoch takes fewer steps.
//
// Run it: ./workbook run 03 --world 2
// Made by ./workbook render from checker/chapters/data_parallel/train.cpp; it is yours now.

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

  // TODO 4: Make a DistributedSampler for each split.
  //   Make three samplers here, one for each split: train_sampler, valid_sampler and test_sampler.
  //
  //   A sampler decides which samples a rank sees. A DistributedSampler deals them out like cards.
  //   With W ranks, rank r takes the r-th, the (r+W)-th, the (r+2W)-th, and no two ranks hold the
  //   same card.
  //
  //   The training sampler shuffles with the seed of the options. It drops the last few samples if
  //   the ranks cannot share them evenly, so that all ranks take the same number of steps. The
  //   other two neither shuffle nor pad, so that every sample counts exactly once.
  //
  //   Expect no difference yet. The loaders use the samplers from TODO 5, 6 and 7 on.

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  // TODO 5: Deal out the training data.
  //   Let the training loader draw from train_sampler instead of a RandomSampler.
  //
  //   A RandomSampler draws from all of the data on every rank, so two ranks do the same work
  //   twice. You do not lose the shuffling. The DistributedSampler does it now, the same way on all
  //   ranks.
  //
  //   Expect half as many steps per epoch with --world 2. The two training losses differ a little,
  //   because each covers its own half.
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  // TODO 6: Deal out the validation data.
  //   Let the validation loader draw from valid_sampler instead of a SequentialSampler.
  //
  //   Evaluation takes time too, and ranks can share it like training. W ranks need a W-th of the
  //   time.
  //
  //   Expect the ranks to report different validation losses from now on, because each covers its
  //   own share. Step 05 fixes that.
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  // TODO 7: Deal out the test data.
  //   Let the test loader draw from test_sampler, for the same reason as in TODO 6.
  //
  //   Expect the test to take half as long with --world 2, and its loss to differ from rank to
  //   rank.
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
