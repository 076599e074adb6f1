// Transformers need clipped gradients, so the step clips them with torch's function.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

namespace {

constexpr double kLargestNorm = 0.25;

struct Parts {
  FullyShardedDataParallel<tasks::Model> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<tasks::Schedule> schedule;
};

Parts assemble(const tasks::Task& task, torch::Device device, int64_t steps) {
  const auto module = task.make_model();
  module->to(device);
  FullyShardedDataParallel<tasks::Model> model(module, {.units = module->blocks()});
  auto optimizer = task.make_optimizer(model->parameters());
  auto schedule = task.make_schedule(*optimizer, steps);
  return {model, std::move(optimizer), std::move(schedule)};
}

tasks::Loss clipped_step(const tasks::Task& task, Parts& parts, const tasks::Batch& batch,
                         torch::Device device) {
  const auto [input, target] = batch.to(device);
  parts.optimizer->zero_grad();
  const auto loss = task.loss(parts.model->forward(input), target);
  loss.mean().backward();
  torch::nn::utils::clip_grad_norm_(parts.model->parameters(), kLargestNorm);
  parts.optimizer->step();
  return loss;
}

tasks::Score train(const tasks::Task& task, Parts& parts, auto& loader, torch::Device device,
                   tasks::Progress& progress) {
  parts.model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      return clipped_step(task, parts, taken, device);
    });
    parts.schedule->step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, Parts& parts, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  parts.model->eval();
  const WholeParameters whole = parts.model->summon_full_params();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(parts.model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

}  // namespace

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
  const auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader = data::make_data_loader(valid_set, valid_sampler,
                                                   data::DataLoaderOptions(options.batch_size));
  const auto test_loader =
      data::make_data_loader(test_set, test_sampler, data::DataLoaderOptions(options.batch_size));

  tasks::Progress progress(options, *train_set.size());
  auto parts = assemble(*task, world.device, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(*task, parts, *train_loader, world.device, progress);
    const auto valid = evaluate(*task, parts, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*parts.model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, parts, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*parts.model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
