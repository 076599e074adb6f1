// Step 06: the finished trainer. Evaluation keeps its batches on the device.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The order of evaluation never changes, so its batches are fetched and moved once.
template <typename Loader>
const std::vector<tasks::Batch>& on_device(Loader& loader, torch::Device device) {
  static const auto kept = [&] {
    std::vector<tasks::Batch> batches;
    for (auto& batch : loader) batches.push_back(batch.to(device));
    return batches;
  }();
  return kept;
}

template <typename Model, typename Loader>
tasks::Score evaluate(const tasks::Task& task, Model& model, Loader& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (const auto& [input, target] : on_device(loader, device))
    totals += task.loss(model->forward(input), target).totals();
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

template <typename Model>
struct Trainer {
  const tasks::Task& task;
  Model model;
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;
  torch::Device device;

  tasks::Loss step(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    return loss;
  }

  tasks::Score epoch(auto& loader) {
    model->train();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto loss = step(batch);
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
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
  Trainer<DistributedDataParallel<tasks::Model>> trainer{*task,     model,    *optimizer,
                                                         *schedule, progress, device};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.epoch(*train_loader);
    const auto valid = evaluate(*task, model, *valid_loader, device);
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
