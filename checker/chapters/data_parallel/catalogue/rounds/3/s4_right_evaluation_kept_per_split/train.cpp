// Step 04: one model on all ranks. Evaluation data is fetched once and stays on the device.

#include <fmt/format.h>
#include <torch/torch.h>

#include <string_view>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This rank's share of a split, which never changes.
class Exam {
 public:
  Exam(const tasks::Task& task, std::string_view split, int64_t batch_size, torch::Device device)
      : task_(task), device_(device) {
    const auto set = task.dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(batch_size));
    for (auto& batch : *loader) batches_.push_back(batch.to(device).clone());
  }

  tasks::Score grade(auto& model) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    for (const auto& batch : batches_) {
      totals += task_.loss(model->forward(batch.input), batch.target).totals();
    }
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  std::vector<tasks::Batch> batches_;
};

// Adds up gradients over parts of a step; only the last one's backward() lets the ranks talk. The
// course's steps have one part, so that they always do.
template <class Model>
class Accumulation {
 public:
  Accumulation(Model& model, int parts) : model_(model), parts_(parts) {}

  template <class Part>
  void operator()(Part part) {
    for (int i = 1; i < parts_; ++i) {
      const auto quiet = model_->no_sync();
      part();
    }
    part();
  }

 private:
  Model& model_;
  int parts_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  Accumulation accumulate(model, 1);
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto sample = batch.to(device);
    tasks::Loss loss;
    optimizer.zero_grad();
    accumulate([&] {
      loss = task.loss(model->forward(sample.input), sample.target);
      loss.mean().backward();
    });
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
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
  const Exam validation(*task, "validation", options.batch_size, device);
  const Exam final_test(*task, "test", options.batch_size, device);

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
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = validation.grade(model);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = final_test.grade(model);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
