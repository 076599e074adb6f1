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

// Validation: a block of consecutive samples for each rank, as many for each, so that all are done
// at the same time. Test and training are dealt by the library.
struct Span {
  size_t first, last;
};

Span block_of(size_t size, int rank, int ranks) {
  const size_t each = (size + ranks - 1) / ranks;
  const size_t first = std::min<size_t>(each * rank, size - each);
  return {first, first + each};
}

class Validator {
 public:
  Validator(const tasks::Task& task, const World& world, int64_t batch)
      : task_(task), set_(task.dataset("validation")), device_(world.device), batch_(batch),
        span_(block_of(*set_.size(), world.rank, world.world_size)) {}

  tasks::Score operator()(auto& model) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    for (size_t at = span_.first; at < span_.last; at += batch_) {
      std::vector<size_t> indices(std::min<size_t>(batch_, span_.last - at));
      std::iota(indices.begin(), indices.end(), at);
      const auto batch = set_.get_batch(indices).to(device_);
      totals += task_.loss(model->forward(batch.input), batch.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  tasks::Dataset set_;
  torch::Device device_;
  int64_t batch_;
  Span span_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto test_set = task->dataset("test");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  Validator validate(*task, world, options.batch_size);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = validate(model);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test_loader = data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
      data::DataLoaderOptions(options.batch_size));
  auto totals = task->no_totals(device);
  {
    const torch::NoGradGuard no_grad;
    model->eval();
    for (auto& batch : *test_loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
  }
  all_reduce(totals, ReduceOp::SUM);
  const auto test = task->score(totals);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
