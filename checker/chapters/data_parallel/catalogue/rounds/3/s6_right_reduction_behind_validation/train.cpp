#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

struct Pending {
  torch::Tensor totals;
  Work work;
  explicit Pending(const torch::Tensor& sums) : totals(sums), work(all_reduce_async(totals)) {}
  tasks::Score score(const tasks::Task& task) {
    work.wait();
    return task.score(totals);
  }
};

// Starts to add up over the ranks; the caller waits when it needs the number.
Pending train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer, auto& schedule,
              torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return Pending(totals);
}

Pending evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return Pending(totals);
}

template <class M>
struct Keeper {
  const tasks::Options& options;
  const M& model;
  tasks::Score best;
  void offer(const tasks::Score& score) {
    if (!(score < best)) return;
    best = score;
    save0(*model, options.output / "model-best.safetensors");
  }
  void close() const { save0(*model, options.output / "model-final.safetensors"); }
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
  const auto eager = [&, ranks = world_size, me = rank](const tasks::Dataset& set) {
    return DistributedSampler(*set.size(), {.shuffle = false, .pad = false,
                                            .num_replicas = ranks, .rank = me});
  };
  DistributedSampler order(*train_set.size(),
                           {.shuffle = true, .seed = options.seed, .drop_last = true,
                            .num_replicas = world_size, .rank = rank});
  auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, eager(valid_set),
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader = data::make_data_loader(test_set, eager(test_set),
                                            data::DataLoaderOptions(options.batch_size));
  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Keeper<DistributedDataParallel<tasks::Model>> keeper{options, model, {}};
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    auto training = train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    auto validation = evaluate(*task, model, *valid_loader, device);
    const auto trained = training.score(*task);
    const auto valid = validation.score(*task);
    progress.report(trained, valid);
    keeper.offer(valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
  }
  const auto test = evaluate(*task, model, *test_loader, device).score(*task);
  progress.report(test);
  keeper.close();
  print0("best validation loss: {}", task->describe(keeper.best));
  print0("test loss: {}", task->describe(test));
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
