// Step 04: The ranks train one model.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What belongs to one run.
struct Run {
  const tasks::Task& task;
  const World& world;
  DistributedDataParallel<tasks::Model> model;
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;
};

tasks::Loss forward(Run& run, const tasks::Batch& batch) {
  const auto [input, target] = batch.to(run.world.device);
  return run.task.loss(run.model->forward(input), target);
}

// This rank's part of the mean over all ranks.
torch::Tensor part_of_mean(const Run& run, const tasks::Loss& loss) {
  return loss.mean() / run.world.world_size;
}

tasks::Score train(Run& run, auto& loader) {
  run.model->train();
  auto totals = run.task.no_totals(run.world.device);
  for (auto& batch : loader) {
    run.optimizer.zero_grad();
    const auto loss = forward(run, batch);
    part_of_mean(run, loss).backward();
    run.optimizer.step();
    run.schedule.step();
    totals += loss.totals();
    if (!run.progress.step(loss)) break;
  }
  return run.task.score(totals);
}

tasks::Score evaluate(Run& run, auto& loader) {
  const torch::NoGradGuard no_grad;
  run.model->eval();
  auto totals = run.task.no_totals(run.world.device);
  for (auto& batch : loader) totals += forward(run, batch).totals();
  return run.task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

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
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  Run run{*task, world, model, *optimizer, *schedule, progress};
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(run, *train_loader);
    const auto valid = evaluate(run, *valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(run, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
