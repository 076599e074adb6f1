#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <ranges>

// The samples of this rank, as lists of indices, one list a batch.
using Plan = std::vector<std::vector<size_t>>;

// All that the library's sampler gives out, fetched in advance.
Plan plan(DistributedSampler sampler, size_t batch_size, bool only_full) {
  Plan batches;
  sampler.reset();
  while (auto indices = sampler.next(batch_size)) {
    if (only_full && indices->size() < batch_size) break;
    batches.push_back(std::move(*indices));
  }
  return batches;
}

struct Trainer {
  const tasks::Options& options;
  torch::Device device;
  std::shared_ptr<tasks::Task> task;
  std::shared_ptr<tasks::Model> model;

  tasks::Loss loss_of(tasks::Dataset set, const std::vector<size_t>& indices) const {
    const auto [input, target] = set.get_batch(indices).to(device);
    return task->loss(model->forward(input), target);
  }

  tasks::Score evaluate(const tasks::Dataset& set) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    for (const auto& indices : plan(sampler, static_cast<size_t>(options.batch_size), false)) {
      totals += loss_of(set, indices).totals();
    }
    return task->score(totals);
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

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());
  const Trainer trainer{options, device, task, model};
  const DistributedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const Plan steps = plan(train_sampler, static_cast<size_t>(options.batch_size), true);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    for (const auto& indices : steps) {
      const auto loss = trainer.loss_of(train_set, indices);
      optimizer->zero_grad();
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = trainer.evaluate(valid_set);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(test_set);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
