// Step 05: losses are added up within a node first, then between the nodes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Reduction = std::function<void(const torch::Tensor&)>;

// A sum in two stages: over each node's own links, then once over the network.
Reduction sum_by_node(const World& world) {
  const auto local = torch::full({1}, world.local_rank,
                                 torch::TensorOptions(torch::kLong).device(world.device));
  const auto everybody = all_gather(local).reshape({-1}).cpu();
  std::vector<int> leaders;
  for (int rank = 0; rank < world.world_size; ++rank) {
    if (everybody[rank].item<int64_t>() == 0) leaders.push_back(rank);
  }
  Group node;
  for (size_t i = 0; i < leaders.size(); ++i) {
    const int end = i + 1 < leaders.size() ? leaders[i + 1] : world.world_size;
    std::vector<int> members;
    for (int rank = leaders[i]; rank < end; ++rank) members.push_back(rank);
    if (const auto group = new_group(members)) node = *group;
  }
  const auto between = new_group(leaders);
  return [node, between](const torch::Tensor& totals) {
    all_reduce(totals, ReduceOp::SUM, node);
    if (between) all_reduce(totals, ReduceOp::SUM, *between);
  };
}

// Training and evaluation of one model.
template <class Model>
struct Run {
  const tasks::Task& task;
  const Model& model;
  torch::Device device;
  Reduction reduce;

  tasks::Score train(auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
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
    reduce(totals);
    return task.score(totals);
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    reduce(totals);
    return task.score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

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
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Run<DistributedDataParallel<tasks::Model>> run{*task, model, world.device,
                                                       sum_by_node(world)};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = run.train(*train_loader, *optimizer, *schedule, progress);
    const auto valid = run.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = run.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
