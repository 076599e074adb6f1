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

// What a rank has seen in a pass: sums of losses and targets, and how many batches.
struct Tally {
  torch::Tensor totals;
  int64_t batches = 0;

  void add(const tasks::Loss& loss) {
    totals += loss.totals();
    ++batches;
  }
  // The ranks' averages, each with the weight of the batches it stands for.
  tasks::Score over_ranks(const tasks::Task& task) const {
    const auto weighted = batches ? totals / totals[1] * batches : totals.clone();
    all_reduce(weighted, ReduceOp::SUM);
    return task.score(weighted);
  }
};

template <class Model>
class Course {
 public:
  Course(const tasks::Options& options, const tasks::Task& task, Model model, torch::Device device)
      : options_(options), task_(task), model_(std::move(model)), device_(device) {}

  tasks::Score lesson(auto& loader, auto& optimizer, auto& schedule, tasks::Progress& progress) {
    model_->train();
    Tally tally{task_.no_totals(device_)};
    for (auto& batch : loader) {
      const auto here = batch.to(device_);
      optimizer.zero_grad();
      const auto loss = task_.loss(model_->forward(here.input), here.target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      tally.add(loss);
      if (!progress.step(loss)) break;
    }
    return tally.over_ranks(task_);
  }

  tasks::Score exam(const char* split) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto set = task_.dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    Tally tally{task_.no_totals(device_)};
    for (auto& batch : *loader) {
      const auto here = batch.to(device_);
      tally.add(task_.loss(model_->forward(here.input), here.target));
    }
    return tally.over_ranks(task_);
  }

  void keep(const char* name) const { save0(*model_, options_.output / name); }

 private:
  const tasks::Options& options_;
  const tasks::Task& task_;
  Model model_;
  torch::Device device_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Course course(options, *task, model, device);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    const auto trained = course.lesson(*loader, *optimizer, *schedule, progress);
    const auto valid = course.exam("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      course.keep("model-best.safetensors");
    }
  }
  const auto test = course.exam("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  course.keep("model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
