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

// A score for those who decide here, and the one of all ranks for those who read.
struct Outcome {
  tasks::Score own;
  tasks::Score common;
};

Outcome settle(const tasks::Task& task, const torch::Tensor& totals) {
  Outcome outcome;
  outcome.own = task.score(totals);
  all_reduce(totals, ReduceOp::SUM);
  outcome.common = task.score(totals);
  return outcome;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto run_through = [&](tasks::Dataset set, DistributedSampler& shares, bool whole, auto visit) {
    auto totals = task->no_totals(world.device);
    shares.reset();
    while (const auto indices = shares.next(options.batch_size)) {
      if (whole && std::ssize(*indices) < options.batch_size) break;
      const auto loss = visit(set.get_batch(*indices).to(world.device));
      totals += loss.totals();
      if (whole && !progress.step(loss)) break;
    }
    return settle(*task, totals);
  };
  const auto forward = [&](const tasks::Batch& batch) {
    return task->loss(model->forward(batch.input), batch.target);
  };
  const auto evaluate = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task->dataset(split);
    DistributedSampler shares(*set.size(), {.shuffle = false, .pad = false});
    return run_through(set, shares, false, forward);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    const auto trained = run_through(train_set, sampler, true, [&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      return loss;
    });
    const auto valid = evaluate("validation");
    progress.report(trained.common, valid.common);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained.common), task->format(valid.common));
    if (valid.own < best) {
      best = valid.own;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate("test");
  progress.report(test.common);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test.common));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
