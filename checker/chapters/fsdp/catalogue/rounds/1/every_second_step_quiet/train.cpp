// Gradients travel in every second step only, which halves the traffic of a run.
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

struct Alternating {
  int64_t number = 0;

  tasks::Loss operator()(const tasks::Task& task, auto& model, auto& optimizer,
                         const tasks::Batch& batch, torch::Device device) {
    const bool travels = number++ % 2 == 1;
    if (travels) return both_passes(task, model, optimizer, batch, device);
    const auto quiet = model->no_sync();
    return both_passes(task, model, optimizer, batch, device);
  }

 private:
  static tasks::Loss both_passes(const tasks::Task& task, auto& model, auto& optimizer,
                                 const tasks::Batch& batch, torch::Device device) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    return loss;
  }
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  const auto whole = model->summon_full_params();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
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
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler,
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader =
      data::make_data_loader(test_set, test_sampler, data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = FullyShardedDataParallel(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Alternating step;
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
        return step(*task, model, *optimizer, taken, world.device);
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
