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

struct Loop {
  const tasks::Task& task;
  torch::Device device;

  tasks::Score learn(auto& model, auto& loader, auto& optimizer, auto& schedule, auto& progress) const {
    model->train();
    auto totals = task.no_totals(device);
    auto it = loader.begin();
    while (it != loader.end()) {
      const auto [input, target] = it->to(device);
      optimizer.zero_grad();
      const auto loss = task.loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      ++it;
    }
    return reduced(totals);
  }

  tasks::Score look(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return reduced(totals);
  }

  tasks::Score reduced(const torch::Tensor& totals) const {
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
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader = data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}),
      data::DataLoaderOptions(options.batch_size));
  const auto test_loader = data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
      data::DataLoaderOptions(options.batch_size));
  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Loop loop{*task, device};
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    const auto trained = loop.learn(model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = loop.look(model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  // The closing is rank 0's: it tests, tells and keeps.
  if (rank == 0) {
    const auto test = loop.look(model, *test_loader);
    progress.report(test);
    fmt::println("best validation loss: {}", task->describe(best));
    fmt::println("test loss: {}", task->describe(test));
    save0(*model, options.output / "model-final.safetensors");
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
