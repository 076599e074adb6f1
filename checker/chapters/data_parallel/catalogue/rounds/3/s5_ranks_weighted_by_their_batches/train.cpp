// Step 05: every rank hands in its mean, weighted by how much it has seen.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The losses of a pass, and how many batches they came from.
struct Account {
  torch::Tensor totals;
  int64_t batches = 0;

  Account& operator+=(const tasks::Loss& loss) {
    totals += loss.totals();
    ++batches;
    return *this;
  }

  // The mean over all ranks. A plain average of the ranks' means would be wrong where one rank has
  // seen more than another, so each counts as often as it had batches.
  tasks::Score settle(const tasks::Task& task) const {
    const auto weighted = totals / totals[1] * batches;
    all_reduce(weighted, ReduceOp::SUM);
    return task.score(weighted);
  }
};

class Trainer {
 public:
  Trainer(const tasks::Task& task, torch::Device device) : task_(task), device_(device) {}

  tasks::Score train(auto& model, auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model->train();
    Account account{task_.no_totals(device_)};
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      optimizer.zero_grad();
      const auto loss = task_.loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      account += loss;
      if (!progress.step(loss)) break;
    }
    return account.settle(task_);
  }

  tasks::Score evaluate(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    Account account{task_.no_totals(device_)};
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      account += task_.loss(model->forward(input), target);
    }
    return account.settle(task_);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
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
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Trainer trainer(*task, device);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.train(model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = trainer.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(model, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
