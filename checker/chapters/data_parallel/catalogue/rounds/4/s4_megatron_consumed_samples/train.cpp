// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// As in Megatron: the data's position is known by the samples that all ranks have consumed.
class TrainingData {
 public:
  TrainingData(const tasks::Dataset& set, const tasks::Options& options, int world_size)
      : sampler_(*set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        loader_(data::make_data_loader(
            set, sampler_, data::DataLoaderOptions(options.batch_size).drop_last(true))),
        samples_per_step_(static_cast<size_t>(options.batch_size) *
                          static_cast<size_t>(world_size)) {}

  auto& start(int64_t epoch) {
    sampler_.set_epoch(static_cast<uint64_t>(epoch));
    sampler_.skip(consumed_samples_);
    return *loader_;
  }

  void consumed_a_step() { consumed_samples_ += samples_per_step_; }

 private:
  DistributedSampler sampler_;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader_;
  size_t samples_per_step_;
  size_t consumed_samples_ = 0;
};

class EvaluationData {
 public:
  EvaluationData(const tasks::Dataset& set, const tasks::Options& options)
      : loader_(data::make_data_loader(
            set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
            data::DataLoaderOptions(options.batch_size))) {}

  auto begin() { return loader_->begin(); }
  auto end() { return loader_->end(); }

 private:
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader_;
};

tasks::Loss forward_step(const tasks::Task& task, auto& model, const tasks::Batch& batch,
                         torch::Device device) {
  const auto [input, target] = batch.to(device);
  return task.loss(model->forward(input), target);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, EvaluationData& batches,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : batches) totals += forward_step(task, model, batch, device).totals();
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  TrainingData train_data(train_set, options, world_size);
  EvaluationData valid_data(task->dataset("validation"), options);
  EvaluationData test_data(task->dataset("test"), options);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : train_data.start(epoch)) {
      optimizer->zero_grad();
      const auto loss = forward_step(*task, model, batch, device);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_data.consumed_a_step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, valid_data, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, test_data, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
