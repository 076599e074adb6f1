// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Who am I, and how many are we? As in MPI codes, the first thing that main asks.
struct Self {
  const int id = get_rank();
  const int count = get_world_size();

  DistributedSampler deck(const tasks::Dataset& set, DistributedSamplerOptions how) const {
    how.num_replicas = count;
    how.rank = id;
    return DistributedSampler(*set.size(), how);
  }
};

struct Run {
  const tasks::Options& options;
  const std::shared_ptr<tasks::Task> task;
  const torch::Device device;
  const std::shared_ptr<tasks::Model> model;
  tasks::Progress& progress;
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;

  tasks::Loss forward(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  }

  tasks::Score train(auto& loader) {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) totals += forward(batch).totals();
    return task->score(totals);
  }
};

int main(int argc, char** argv) try {
  const Self self;
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_sampler =
      self.deck(train_set, {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto valid_sampler = self.deck(valid_set, {.shuffle = false, .pad = false});
  const auto test_sampler = self.deck(test_set, {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Run run{options, task, device, model, progress, *optimizer, *schedule};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = run.train(*train_loader);
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
