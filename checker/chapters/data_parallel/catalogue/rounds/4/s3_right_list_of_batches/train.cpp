// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <span>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Python's list(loader): the shares are small, so they stay on the device.
using Batches = std::vector<tasks::Batch>;

Batches list_of(const tasks::Dataset& set, const DistributedSamplerOptions& sampling,
                const data::DataLoaderOptions& batching, torch::Device device) {
  const DistributedSampler sampler(*set.size(), sampling);
  const auto loader = data::make_data_loader(set, sampler, batching);
  Batches list;
  for (auto& batch : *loader) list.push_back(batch.to(device));
  return list;
}

class Learner {
 public:
  Learner(const tasks::Task& task, torch::Device device, tasks::Progress& progress)
      : task_(task), device_(device), progress_(progress), model_(task.make_model()) {
    model_->to(device);
    optimizer_ = task.make_optimizer(model_->parameters());
    schedule_ = task.make_schedule(*optimizer_, progress.total_steps());
  }

  tasks::Score learn(std::span<const tasks::Batch> batches) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (const auto& [input, target] : batches) {
      optimizer_->zero_grad();
      const auto loss = task_.loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score examine(std::span<const tasks::Batch> batches) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (const auto& [input, target] : batches) {
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return task_.score(totals);
  }

  void keep(const std::filesystem::path& path) const { torch::save(model_, path); }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  tasks::Progress& progress_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const DistributedSamplerOptions shuffled{
      .shuffle = true, .seed = options.seed, .drop_last = true};
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  const data::DataLoaderOptions batching(options.batch_size);
  const auto full_ones = data::DataLoaderOptions(options.batch_size).drop_last(true);

  // The sampler's order is the same in every epoch, so one list will do for all of them.
  const auto train_list = list_of(train_set, shuffled, full_ones, device);
  const auto valid_list = list_of(task->dataset("validation"), in_order, batching, device);
  const auto test_list = list_of(task->dataset("test"), in_order, batching, device);

  tasks::Progress progress(options, *train_set.size());
  Learner learner(*task, device, progress);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = learner.learn(train_list);
    const auto valid = learner.examine(valid_list);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      learner.keep(options.output / "model-best.pt");
    }
  }

  const auto test = learner.examine(test_list);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  learner.keep(options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
