// Step 05: every rank gets the table of all ranks' totals and adds it up itself.

#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Collects the totals of several passes and sends all of them at once.
class Ledger {
 public:
  explicit Ledger(const tasks::Task& task) : task_(task) {}

  Ledger& enter(const torch::Tensor& totals) {
    pages_.push_back(totals);
    return *this;
  }

  // One score for each pass that was entered, over all ranks. All ranks call it.
  std::vector<tasks::Score> close() {
    // [ranks, passes, totals] becomes [passes, totals].
    const auto sums = all_gather(torch::stack(pages_)).sum(0);
    std::vector<tasks::Score> scores;
    for (size_t page = 0; page < pages_.size(); ++page) {
      scores.push_back(task_.score(sums[static_cast<int64_t>(page)]));
    }
    pages_.clear();
    return scores;
  }

 private:
  const tasks::Task& task_;
  std::vector<torch::Tensor> pages_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto exactly_once = [&](std::string_view split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  };
  const auto valid_loader = exactly_once("validation");
  const auto test_loader = exactly_once("test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };
  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return totals;
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return totals;
  };

  Ledger ledger(*task);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    ledger.enter(train());
    ledger.enter(evaluate(*valid_loader));
    const auto scores = ledger.close();
    const auto& trained = scores[0];
    const auto& valid = scores[1];
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = ledger.enter(evaluate(*test_loader)).close().front();
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
