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

// The whole run is one walk over steps; an epoch is closed when its last step is done.
class Walk {
 public:
  Walk(DistributedSampler& sampler, const tasks::Dataset& set, size_t batch) : sampler_(sampler), set_(set), batch_(batch) {}

  void open(int64_t epoch) {
    sampler_.set_epoch(epoch);
    sampler_.reset();
  }
  // This rank's next full batch; none at the end of the epoch.
  std::optional<tasks::Batch> next() {
    auto indices = sampler_.next(batch_);
    if (!indices || indices->size() < batch_) return std::nullopt;
    return set_.get_batch(*indices);
  }

 private:
  DistributedSampler& sampler_;
  tasks::Dataset set_;
  size_t batch_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  Walk walk(sampler, train_set, options.batch_size);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto score_split = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto set = task->dataset(split);
    DistributedSampler mine(*set.size(), {.shuffle = false, .pad = false});
    mine.reset();
    auto totals = task->no_totals(world.device);
    while (const auto indices = mine.next(options.batch_size)) {
      const auto batch = set.get_batch(*indices).to(world.device);
      totals += task->loss(model->forward(batch.input), batch.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    model->train();
    return task->score(totals);
  };

  tasks::Score best;
  auto totals = task->no_totals(world.device);
  const auto close_epoch = [&](int64_t epoch) {
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    totals.zero_();
    const auto valid = score_split("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  };

  model->train();
  walk.open(0);
  for (int64_t epoch = 0; epoch < options.epochs;) {
    const auto batch = walk.next();
    if (!batch) {
      close_epoch(epoch);
      if (++epoch < options.epochs) walk.open(epoch);
      continue;
    }
    const auto here = batch->to(world.device);
    model->zero_grad();
    const auto loss = task->loss(model->forward(here.input), here.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    if (progress.step(loss)) continue;  // false: max_steps are done
    close_epoch(epoch);
    break;
  }

  const auto test = score_split("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
