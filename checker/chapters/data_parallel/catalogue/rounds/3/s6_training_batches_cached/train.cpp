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

// Fetches each batch once and keeps it on the device.
class Store {
 public:
  explicit Store(torch::Device device) : device_(device) {}

  template <class Loader>
  const std::vector<tasks::Batch>& batches(const std::string& split, Loader& loader) {
    auto& kept = kept_[split];
    if (kept.empty())
      for (auto& batch : loader) kept.push_back(batch.to(device_));
    return kept;
  }

 private:
  torch::Device device_;
  std::map<std::string, std::vector<tasks::Batch>> kept_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto exam = [&](const char* split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  const auto valid_loader = exam("validation");
  const auto test_loader = exam("test");
  Store store(world.device);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto common = [&](torch::Tensor totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(world.device);
    for (const auto& [input, target] : store.batches("train", *train_loader)) {
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return common(totals);
  };
  const auto evaluate = [&](const char* split, auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (const auto& [input, target] : store.batches(split, loader))
      totals += task->loss(model->forward(input), target).totals();
    return common(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate("validation", *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate("test", *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
