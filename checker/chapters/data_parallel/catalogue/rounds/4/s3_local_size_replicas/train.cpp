// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Horovod's names for where a process is.
struct Topology {
  World world;

  int local_rank() const { return world.local_rank; }

  // One more than the largest local rank.
  int local_size() const {
    const auto mine = torch::full({1}, world.local_rank,
                                  torch::dtype(torch::kInt64).device(world.device));
    all_reduce(mine, ReduceOp::MAX);
    return static_cast<int>(mine.item<int64_t>()) + 1;
  }
};

// Makes the options of samplers for this process.
class Sharding {
 public:
  explicit Sharding(const Topology& topology)
      : shards_(topology.local_size()), index_(topology.local_rank()) {}

  DistributedSampler shuffled(const tasks::Dataset& set, uint64_t seed) const {
    DistributedSamplerOptions options = place();
    options.shuffle = true;
    options.seed = seed;
    options.drop_last = true;
    return DistributedSampler(*set.size(), options);
  }

  DistributedSampler in_order(const tasks::Dataset& set) const {
    DistributedSamplerOptions options = place();
    options.shuffle = false;
    options.pad = false;
    return DistributedSampler(*set.size(), options);
  }

 private:
  DistributedSamplerOptions place() const {
    DistributedSamplerOptions options;
    options.num_replicas = shards_;
    options.rank = index_;
    return options;
  }

  int shards_;
  int index_;
};

tasks::Loss loss_of(const tasks::Task& task, auto& model, const tasks::Batch& batch,
                    torch::Device device) {
  const auto [input, target] = batch.to(device);
  return task.loss(model->forward(input), target);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) totals += loss_of(task, model, batch, device).totals();
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const Topology topology{setup({.backend = options.backend, .device = options.device})};
  const auto device = topology.world.device;
  const Sharding sharding(topology);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader =
      data::make_data_loader(train_set, sharding.shuffled(train_set, options.seed),
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, sharding.in_order(valid_set), batches);
  auto test_loader = data::make_data_loader(test_set, sharding.in_order(test_set), batches);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(*task, model, batch, device);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
