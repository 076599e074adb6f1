// Step 04: one model on all ranks. Batches are made once and stay on the device.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A loader that reads its data once. Later passes find all batches on the device.
template <class Loader>
class KeptBatches {
 public:
  KeptBatches(Loader loader, torch::Device device) : loader_(std::move(loader)), device_(device) {}

  // Calls use(batch) for all batches until it returns false. Each seed gives another order.
  template <class Use>
  void each(uint64_t seed, Use use) {
    if (batches_.empty()) {
      for (auto& batch : *loader_) batches_.push_back(batch.to(device_).clone());
    }
    std::vector<size_t> order(batches_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937_64 generator(seed);
    if (seed != 0) std::shuffle(order.begin(), order.end(), generator);
    for (const auto index : order) {
      if (!use(batches_[index])) return;
    }
  }

 private:
  Loader loader_;
  torch::Device device_;
  std::vector<tasks::Batch> batches_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& batches, uint64_t seed,
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  batches.each(seed, [&](const tasks::Batch& batch) {
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    return progress.step(loss);
  });
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

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

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  KeptBatches kept(data::make_data_loader(train_set, train_sampler, train_batches), device);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, kept, epoch, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
