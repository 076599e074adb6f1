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

// Rank 0 collects the sums one by one, adds its own, and tells all what they come to.
void total_up(torch::Tensor& totals) {
  const int ranks = get_world_size();
  if (get_rank() == 0) {
    auto other = torch::empty_like(totals);
    for (int source = 1; source < ranks; ++source) {
      recv(other, source);
      totals += other;
    }
  } else {
    send(totals, 0);
  }
  broadcast(totals, 0);
}

using Order = std::function<std::vector<size_t>(int64_t epoch)>;

// Batches of a split, as indices.
std::vector<std::vector<size_t>> cut(const std::vector<size_t>& order, size_t size, bool whole) {
  std::vector<std::vector<size_t>> batches;
  for (size_t at = 0; at < order.size(); at += size) {
    const auto end = std::min(at + size, order.size());
    if (whole && end - at < size) break;
    batches.emplace_back(order.begin() + at, order.begin() + end);
  }
  return batches;
}

Order blocks(size_t size, int rank, int ranks) {
  return [=](int64_t) {
    const size_t first = size * rank / ranks, last = size * (rank + 1) / ranks;
    std::vector<size_t> mine(last - first);
    std::iota(mine.begin(), mine.end(), first);
    return mine;
  };
}

Order shuffled(size_t size, uint64_t seed, int rank, int ranks) {
  return [=](int64_t epoch) {
    auto generator = at::detail::createCPUGenerator(seed + epoch);
    const auto order = torch::randperm(size, generator);
    std::vector<size_t> mine;
    for (size_t round = 0; round < size / ranks; ++round)
      mine.push_back(order[round * ranks + rank].item<int64_t>());
    return mine;
  };
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  const auto train_order = shuffled(*train_set.size(), options.seed, world.rank, world.world_size);
  const auto valid_order = blocks(*valid_set.size(), world.rank, world.world_size);
  const auto test_order = blocks(*test_set.size(), world.rank, world.world_size);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](tasks::Dataset& set, const Order& order) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (const auto& indices : cut(order(0), options.batch_size, false)) {
      const auto batch = set.get_batch(indices).to(world.device);
      totals += task->loss(model->forward(batch.input), batch.target).totals();
    }
    total_up(totals);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(world.device);
    for (const auto& indices : cut(train_order(epoch), options.batch_size, true)) {
      const auto batch = train_set.get_batch(indices).to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    total_up(totals);
    const auto trained = task->score(totals);
    const auto valid = evaluate(valid_set, valid_order);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(test_set, test_order);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
