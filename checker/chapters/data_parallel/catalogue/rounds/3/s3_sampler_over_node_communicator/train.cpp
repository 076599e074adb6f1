// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// MPI_Comm_split_type(MPI_COMM_TYPE_SHARED): the ranks that share this rank's node. Each node has
// the data on its own disk, so the ranks of a node share them out.
Group node_group(const World& world) {
  const auto locals =
      all_gather(torch::tensor({int64_t{world.local_rank}}).to(world.device)).cpu().flatten();
  std::vector<std::vector<int>> nodes;
  for (int r = 0; r < world.world_size; ++r) {
    if (locals[r].item<int64_t>() == 0) nodes.emplace_back();
    nodes.back().push_back(r);
  }
  Group mine;
  for (const auto& ranks : nodes) {  // every rank calls new_group for every node
    if (const auto group = new_group(ranks)) mine = *group;
  }
  return mine;
}

struct Samplers {
  DistributedSampler train, valid, test;
};

Samplers deal(const tasks::Options& options, const Group& group, size_t train, size_t valid,
              size_t test) {
  const auto in_order = [&](size_t size) {
    return DistributedSampler(size, {.shuffle = false, .pad = false, .group = group});
  };
  return {DistributedSampler(
              train,
              {.shuffle = true, .seed = options.seed, .drop_last = true, .group = group}),
          in_order(valid), in_order(test)};
}

class Totals {
 public:
  Totals(const tasks::Task& task, torch::Device device)
      : task_(task), sum_(task.no_totals(device)) {}
  Totals& operator<<(const tasks::Loss& loss) {
    sum_ += loss.totals();
    return *this;
  }
  operator tasks::Score() const { return task_.score(sum_); }

 private:
  const tasks::Task& task_;
  torch::Tensor sum_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  const auto samplers = deal(options, node_group(world), *train_set.size(), *valid_set.size(),
                             *test_set.size());

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, samplers.train, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, samplers.valid, batches);
  auto test_loader = data::make_data_loader(test_set, samplers.test, batches);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto moved = batch.to(device);
    return task->loss(model->forward(moved.input), moved.target);
  };
  const auto train = [&]() -> tasks::Score {
    model->train();
    Totals totals(*task, device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals << loss;
      if (!progress.step(loss)) break;
    }
    return totals;
  };
  const auto evaluate = [&](auto& loader) -> tasks::Score {
    const torch::NoGradGuard no_grad;
    model->eval();
    Totals totals(*task, device);
    for (auto& batch : loader) totals << loss_of(batch);
    return totals;
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
