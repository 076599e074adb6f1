// Step 06: the finished trainer. Says on stderr how long the slowest rank took.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Measures a phase. Every rank makes one and calls slowest(), which is a collective.
class Stopwatch {
 public:
  explicit Stopwatch(torch::Device device) : device_(device) {}

  double slowest() const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    const auto seconds = torch::full({1}, passed.count(), torch::kFloat64).to(device_);
    all_reduce(seconds, ReduceOp::MAX);
    return seconds.item<double>();
  }

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Adds up what a pass comes to: first on this rank, at the end over all.
class Meter {
 public:
  Meter(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}

  void add(const tasks::Loss& loss) { totals_ += loss.totals(); }

  tasks::Score everybody() const {
    const auto sum = totals_.clone();
    all_reduce(sum, ReduceOp::SUM);
    return task_.score(sum);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  const auto boss = world.rank == 0;

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

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    Meter meter(*task, device);
    for (auto& batch : loader) {
      const auto here = batch.to(device);
      meter.add(task->loss(model->forward(here.input), here.target));
    }
    return meter.everybody();
  };

  tasks::Score best;
  double training_time = 0;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const Stopwatch watch(device);
    Meter meter(*task, device);
    for (auto& batch : *train_loader) {
      const auto here = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(here.input), here.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      meter.add(loss);
      if (!progress.step(loss)) break;
    }
    const auto trained = meter.everybody();
    const auto seconds = watch.slowest();
    training_time += seconds;
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (boss) fmt::print(stderr, "slowest rank: {:.2f} s\n", seconds);
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  if (boss) fmt::print(stderr, "training took {:.2f} s in all\n", training_time);
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
