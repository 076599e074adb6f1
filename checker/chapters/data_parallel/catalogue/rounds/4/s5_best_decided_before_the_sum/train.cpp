// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The result of one epoch. Sums are added up over the ranks as late as possible: once, at the end
// of the epoch, both passes in one message.
struct EpochResult {
  torch::Tensor training;
  torch::Tensor validation;

  void share() {
    const auto both = torch::stack({training, validation});
    all_reduce(both, ReduceOp::SUM);
    training = both[0];
    validation = both[1];
  }
};

// Remembers the best score and tells whoever asked for it.
class BestKeeper {
 public:
  explicit BestKeeper(std::function<void()> on_better) : on_better_(std::move(on_better)) {}

  void offer(const tasks::Score& score) {
    if (!(score < best_)) return;
    best_ = score;
    on_better_();
  }
  const tasks::Score& best() const { return best_; }

 private:
  std::function<void()> on_better_;
  tasks::Score best_;
};

// A trainer whose parts are handed in.
template <typename Model>
struct Trainer {
  const tasks::Task& task;
  const Model& model;
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;
  torch::Device device;

  torch::Tensor train(auto& loader) {
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
    return totals;
  }

  torch::Tensor evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return totals;
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

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, options.batch_size);
  auto test_loader = data::make_data_loader(test_set, test_sampler, options.batch_size);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Trainer<DistributedDataParallel<tasks::Model>> trainer{*task,     model,    *optimizer,
                                                         *schedule, progress, device};
  BestKeeper keeper([&] { torch::save(model, options.output / "model-best.pt"); });

  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    EpochResult result;
    result.training = trainer.train(*train_loader);
    result.validation = trainer.evaluate(*valid_loader);
    keeper.offer(task->score(result.validation));

    result.share();
    const auto trained = task->score(result.training);
    const auto valid = task->score(result.validation);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
  }

  const auto totals = trainer.evaluate(*test_loader);
  all_reduce(totals, ReduceOp::SUM);
  const auto test = task->score(totals);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(keeper.best()));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
