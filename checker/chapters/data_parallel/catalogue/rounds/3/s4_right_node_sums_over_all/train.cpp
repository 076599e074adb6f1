// Step 04: gradients are added up within a node, then between nodes, and divided once.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Averages over the world in two levels, so that one rank of a node uses the network.
class TwoLevels {
 public:
  explicit TwoLevels(const World& world) : world_size_(world.world_size) {
    const auto is_first = torch::zeros({1}, torch::TensorOptions(torch::kLong).device(world.device))
                              .fill_(world.local_rank == 0 ? 1 : 0);
    // Ranks fill node by node: the number of firsts up to a rank tells its node.
    const auto node_of = all_gather(is_first).reshape({-1}).cumsum(0).cpu();
    std::vector<std::vector<int>> nodes(node_of[world_size_ - 1].item<int64_t>());
    for (int rank = 0; rank < world_size_; ++rank) {
      nodes[node_of[rank].item<int64_t>() - 1].push_back(rank);
    }
    std::vector<int> firsts;
    for (const auto& ranks : nodes) {
      firsts.push_back(ranks.front());
      if (const auto group = new_group(ranks)) node_ = *group;
    }
    across_ = new_group(firsts);
  }

  void average(const torch::Tensor& gradient) const {
    all_reduce(gradient, ReduceOp::SUM, node_);
    if (across_) all_reduce(gradient, ReduceOp::SUM, *across_);
    broadcast(gradient, 0, node_);
    gradient.div_(world_size_);
  }

 private:
  int world_size_;
  Group node_;
  std::optional<Group> across_;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, const TwoLevels& levels, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto loss = task.loss(model->forward(input), target);
  loss.mean().backward();
  for (const auto& parameter : model->parameters()) {
    if (parameter.grad().defined()) levels.average(parameter.grad());
  }
  optimizer.step();
  return loss;
}

// All of a split without learning.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

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

  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(world.device);
  for (const auto& parameter : model->parameters()) broadcast(parameter.detach(), 0);
  for (const auto& buffer : model->buffers()) broadcast(buffer, 0);
  const TwoLevels levels(world);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      const auto loss = train_step(*task, model, *optimizer, batch, levels, world.device);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
