// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This rank's part of an evaluation split, as batches that stay on the device: the split is read
// once and evaluated many times.
class Resident {
 public:
  Resident(const tasks::Dataset& set, int64_t batch_size, torch::Device device) {
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    auto loader = data::make_data_loader(set, sampler, data::DataLoaderOptions(batch_size));
    for (auto& batch : *loader) batches_.push_back(batch.to(device).clone());
  }

  auto begin() const { return batches_.begin(); }
  auto end() const { return batches_.end(); }

 private:
  std::vector<tasks::Batch> batches_;
};

// Switches a module to evaluation, without gradients, while it lives.
class Frozen {
 public:
  explicit Frozen(torch::nn::Module& module) : module_(module), trained_(module.is_training()) {
    module_.eval();
  }
  ~Frozen() { module_.train(trained_); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  torch::nn::Module& module_;
  bool trained_;
  torch::NoGradGuard no_grad_;
};

tasks::Score evaluate(const tasks::Task& task, tasks::Model& model, const Resident& batches,
                      torch::Device device) {
  const Frozen frozen(model);
  auto totals = task.no_totals(device);
  for (const auto& [input, target] : batches) {
    totals += task.loss(model.forward(input), target).totals();
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

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  const Resident valid_batches(task->dataset("validation"), options.batch_size, device);
  const Resident test_batches(task->dataset("test"), options.batch_size, device);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  model->train();
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
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
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, *model, valid_batches, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, *model, test_batches, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
