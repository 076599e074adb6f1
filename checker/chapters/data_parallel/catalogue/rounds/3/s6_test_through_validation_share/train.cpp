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

// Both evaluations go over the same share of a split, so it is computed once.
class Examiner {
 public:
  Examiner(std::shared_ptr<tasks::Task> task, const World& world, int64_t batch)
      : task_(std::move(task)), device_(world.device), batch_(batch) {
    const auto set = task_->dataset("validation");
    DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    sampler.reset();
    while (auto indices = sampler.next(batch_)) share_.push_back(*indices);
  }

  tasks::Score examine(auto& model, const std::string& split) {
    auto set = task_->dataset(split);
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_->no_totals(device_);
    for (auto indices : share_) {
      for (auto& index : indices) index %= *set.size();  // the splits are not equally long
      const auto batch = set.get_batch(indices).to(device_);
      totals += task_->loss(model->forward(batch.input), batch.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

 private:
  std::shared_ptr<tasks::Task> task_;
  torch::Device device_;
  int64_t batch_;
  std::vector<std::vector<size_t>> share_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  Examiner examiner(task, world, options.batch_size);
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  DistributedSampler sampler(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});

  const auto learn = [&](int64_t epoch) {
    sampler.set_epoch(epoch);
    sampler.reset();
    model->train();
    auto totals = task->no_totals(world.device);
    for (bool more = true; more;) {
      const auto indices = sampler.next(options.batch_size);
      if (!indices || std::ssize(*indices) < options.batch_size) break;
      const auto batch = train_set.get_batch(*indices).to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      more = progress.step(loss);
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = learn(epoch);
    const auto valid = examiner.examine(model, "validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = examiner.examine(model, "test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
