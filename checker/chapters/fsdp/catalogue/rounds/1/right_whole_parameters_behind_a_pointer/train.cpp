// FSDP over an explicit group, two units gathered ahead. The gathered parameters live in a pointer,
// because I want to give them back before the losses are added up.
#include <torch/torch.h>

#include <memory>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;

struct Run {
  const tasks::Options& options;
  const tasks::Task& task;
  torch::Device device;
  Group everyone;
};

auto shard(const Run& run) {
  auto whole = run.task.make_model();
  whole->to(run.device);
  return FullyShardedDataParallel(whole, {.group = run.everyone,
                                          .units = whole->blocks(),
                                          .forward_prefetch = 2,
                                          .backward_prefetch = 1});
}

tasks::Score evaluate_split(const Run& run, auto& model, auto& loader) {
  torch::NoGradGuard off;
  model->eval();
  std::unique_ptr<WholeParameters> whole(new WholeParameters(model->summon_full_params()));
  auto totals = run.task.no_totals(run.device);
  for (auto& batch : loader) {
    const auto moved = batch.to(run.device);
    const auto prediction = model->forward(moved.input);
    totals += run.task.loss(prediction, moved.target).totals();
  }
  whole.reset();
  all_reduce(totals, ReduceOp::SUM, run.everyone);
  return run.task.score(totals);
}

tasks::Score train_epoch(const Run& run, auto& model, auto& loader, auto& optimizer,
                         auto& schedule, tasks::Progress& progress) {
  model->train();
  auto totals = run.task.no_totals(run.device);
  for (auto it = loader.begin(); it != loader.end(); ++it) {
    const auto loss = progress.take_step(*it, [&](const tasks::Batch& batch) {
      const auto moved = batch.to(run.device);
      const auto prediction = model->forward(moved.input);
      auto result = run.task.loss(prediction, moved.target);
      optimizer.zero_grad();
      result.mean().backward();
      optimizer.step();
      return result;
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM, run.everyone);
  return run.task.score(totals);
}

void work(const tasks::Options& options) {
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const Run run{options, *task, world.device, world_group()};

  auto train_data = task->dataset("train");
  auto valid_data = task->dataset("validation");
  auto test_data = task->dataset("test");
  DistributedSampler shuffled(
      *train_data.size(),
      {.shuffle = true, .seed = options.seed, .drop_last = true, .group = run.everyone});
  const DistributedSampler in_order(*valid_data.size(), {.shuffle = false, .pad = false});
  const DistributedSampler in_order_too(*test_data.size(), {.shuffle = false, .pad = false});
  using torch::data::DataLoaderOptions;
  auto training = torch::data::make_data_loader(
      train_data, shuffled, DataLoaderOptions(options.batch_size).drop_last(true));
  auto validation =
      torch::data::make_data_loader(valid_data, in_order, DataLoaderOptions(options.batch_size));
  auto testing =
      torch::data::make_data_loader(test_data, in_order_too, DataLoaderOptions(options.batch_size));

  auto model = shard(run);
  auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_data.size());
  auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t e = 1; e <= options.epochs && !progress.finished(); ++e) {
    shuffled.set_epoch(e - 1);
    const auto t = train_epoch(run, model, *training, *optimizer, *schedule, progress);
    const auto v = evaluate_split(run, model, *validation);
    progress.report(t, v);
    print0("epoch {}/{}: training loss {}, validation loss {}", e, options.epochs, task->format(t),
           task->format(v));
    if (v < best) {
      best = v;
      save0(*model, options.output / "model-best.safetensors", run.everyone);
    }
  }
  const auto t = evaluate_split(run, model, *testing);
  progress.report(t);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(t));
  save0(*model, options.output / "model-final.safetensors", run.everyone);
  destroy_process_group();
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  work(options);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
