// Step 04: gradients are averaged within a node first, then between nodes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Two levels of groups: the ranks of a node, and the first rank of every node.
struct Hierarchy {
  Group node;
  std::optional<Group> leaders;

  explicit Hierarchy(const World& world) {
    const auto mine = torch::full({1}, world.local_rank, torch::TensorOptions(torch::kLong).device(world.device));
    const auto local_ranks = all_gather(mine).cpu();
    std::vector<std::vector<int>> nodes;
    std::vector<int> firsts;
    for (int rank = 0; rank < world.world_size; ++rank) {
      if (local_ranks[rank].item<int64_t>() == 0) {
        nodes.emplace_back();
        firsts.push_back(rank);
      }
      nodes.back().push_back(rank);
    }
    for (const auto& ranks : nodes) {
      if (auto group = new_group(ranks)) node = *group;
    }
    leaders = new_group(firsts);
  }

  // Fast links within the node do most of the work, only one rank of each uses the network.
  void average(const torch::Tensor& tensor) const {
    all_reduce(tensor, ReduceOp::AVG, node);
    if (leaders) all_reduce(tensor, ReduceOp::AVG, *leaders);
    broadcast(tensor, 0, node);
  }
};

struct Trainer {
  const tasks::Task& task;
  tasks::Model& model;
  torch::optim::Optimizer& optimizer;
  const Hierarchy& hierarchy;
  torch::Device device;

  tasks::Loss step(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    auto loss = task.loss(model.forward(input), target);
    loss.mean().backward();
    for (const auto& parameter : model.parameters()) hierarchy.average(parameter.grad());
    optimizer.step();
    return loss;
  }

  tasks::Score epoch(auto& loader, tasks::Schedule& schedule, tasks::Progress& progress) const {
    model.train();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto loss = step(batch);
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task.score(totals);
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model.eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model.forward(input), target).totals();
    }
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
  const auto eval_loader = [&](const tasks::Dataset& set) {
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  };
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = eval_loader(valid_set);
  auto test_loader = eval_loader(test_set);

  const auto model = task->make_model();
  model->to(world.device);
  for (const auto& parameter : model->parameters()) broadcast(parameter.detach(), 0);
  for (const auto& buffer : model->buffers()) broadcast(buffer, 0);
  const Hierarchy hierarchy(world);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Trainer trainer{*task, *model, *optimizer, hierarchy, world.device};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.epoch(*train_loader, *schedule, progress);
    const auto valid = trainer.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
