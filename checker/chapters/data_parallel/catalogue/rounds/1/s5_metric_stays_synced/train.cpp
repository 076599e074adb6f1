// Step 05: The reported loss is everybody's.
// With metric objects like those of torchmetrics: update(), compute(), reset().

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Adds up losses; compute() gives the score over all ranks, however often it is called.
class MeanLoss {
 public:
  MeanLoss(const tasks::Task& task, torch::Device device)
      : task_(task), state_(task.no_totals(device)) {}

  void update(const tasks::Loss& loss) { state_ += loss.totals(); }

  tasks::Score compute() {
    sync();
    return task_.score(state_);
  }

  void reset() { state_.zero_(); }

 private:
  // The sum over ranks takes the place of this rank's state, so it must happen once only.
  void sync() {
    if (is_synced_) return;
    all_reduce(state_, ReduceOp::SUM);
    is_synced_ = true;
  }

  const tasks::Task& task_;
  torch::Tensor state_;
  bool is_synced_ = false;
};

struct Metrics {
  MeanLoss train, valid, test;
};

template <class Model>
class LightningLoop {
 public:
  LightningLoop(const tasks::Task& task, Model model, torch::Device device)
      : task_(task),
        model_(model),
        device_(device),
        metrics_{{task, device}, {task, device}, {task, device}} {}

  tasks::Score training_epoch(auto& loader, auto& optimizer, tasks::Schedule& schedule,
                              tasks::Progress& progress) {
    model_->train();
    metrics_.train.reset();
    for (auto& batch : loader) {
      const auto loss = shared_step(batch, [&](const torch::Tensor& mean) {
        optimizer.zero_grad();
        mean.backward();
        optimizer.step();
        schedule.step();
      });
      metrics_.train.update(loss);
      if (!progress.step(loss)) break;
    }
    return metrics_.train.compute();
  }

  tasks::Score validation_epoch(auto& loader) { return evaluation_epoch(loader, metrics_.valid); }
  tasks::Score test_epoch(auto& loader) { return evaluation_epoch(loader, metrics_.test); }

 private:
  tasks::Score evaluation_epoch(auto& loader, MeanLoss& metric) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    metric.reset();
    for (auto& batch : loader) {
      metric.update(shared_step(batch, [](const torch::Tensor&) {}));
    }
    return metric.compute();
  }

  tasks::Loss shared_step(const tasks::Batch& batch, auto optimize) {
    const auto [input, target] = batch.to(device_);
    const auto loss = task_.loss(model_->forward(input), target);
    optimize(loss.mean());
    return loss;
  }

  const tasks::Task& task_;
  Model model_;
  torch::Device device_;
  Metrics metrics_;
};

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
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  LightningLoop loop(*task, model, device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = loop.training_epoch(*train_loader, *optimizer, *schedule, progress);
    const auto valid = loop.validation_epoch(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = loop.test_epoch(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
