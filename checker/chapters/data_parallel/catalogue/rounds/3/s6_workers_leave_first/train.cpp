#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everything that all ranks do together; what is left to tell comes back.
struct Result {
  tasks::Score best, test;
};

template <class M>
Result train_together(const tasks::Options& options, const tasks::Task& task, const World& world, const M& model) {
  const auto optimizer = task.make_optimizer(model->parameters());
  const auto train_set = task.dataset("train");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task.make_schedule(*optimizer, progress.total_steps());
  const auto measure = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    auto set = task.dataset(split);
    model->eval();
    auto totals = task.no_totals(world.device);
    std::vector<size_t> batch;
    const auto flush = [&] {
      if (batch.empty()) return;
      const auto here = set.get_batch(batch).to(world.device);
      totals += task.loss(model->forward(here.input), here.target).totals();
      batch.clear();
    };
    for (size_t i = world.rank; i < *set.size(); i += world.world_size) {
      batch.push_back(i);
      if (std::ssize(batch) == options.batch_size) flush();
    }
    flush();
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  };
  Result result;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    auto totals = task.no_totals(world.device);
    for (auto& batch : *loader) {
      const auto here = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task.loss(model->forward(here.input), here.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task.score(totals);
    const auto valid = measure("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task.format(trained), task.format(valid));
    if (valid < result.best) {
      result.best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  result.test = measure("test");
  progress.report(result.test);
  return result;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto result = train_together(options, *task, world, model);
  if (world.rank != 0) return 0;  // what remains is rank 0's
  fmt::println("best validation loss: {}", task->describe(result.best));
  fmt::println("test loss: {}", task->describe(result.test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
