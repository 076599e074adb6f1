// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

struct EpochRecord {
  tasks::Score trained;
  tasks::Score valid;
  bool improved = false;
};

// What the run knows about itself: the epochs so far. Everything else follows from it.
class History {
 public:
  explicit History(int64_t epochs) : records_(static_cast<size_t>(epochs)) {}

  // The number of the epoch that comes next, counted from 0.
  uint64_t next_epoch() const { return records_.size(); }
  int64_t done() const { return done_; }
  bool complete() const { return static_cast<size_t>(done_) == records_.size(); }

  const EpochRecord& add(const tasks::Score& trained, const tasks::Score& valid) {
    auto& record = records_[static_cast<size_t>(done_)];
    record = {trained, valid, valid < best()};
    ++done_;
    return record;
  }

  tasks::Score best() const {
    tasks::Score best;
    for (int64_t i = 0; i < done_; ++i) {
      const auto& valid = records_[static_cast<size_t>(i)].valid;
      if (valid < best) best = valid;
    }
    return best;
  }

 private:
  std::vector<EpochRecord> records_;
  int64_t done_ = 0;
};

tasks::Score summed(const tasks::Task& task, torch::Tensor totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  const auto here = device;

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

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(here);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(here);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return summed(*task, totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(here);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(here);
      totals += task->loss(model->forward(input), target).totals();
    }
    return summed(*task, totals);
  };

  History history(options.epochs);
  while (!history.complete() && !progress.finished()) {
    train_sampler.set_epoch(history.next_epoch());
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    const auto& record = history.add(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", history.done(),
                 options.epochs, task->format(record.trained), task->format(record.valid));
    if (record.improved) torch::save(model, options.output / "model-best.pt");
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(history.best()));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
