// Step 05: The reported loss is everybody's.
// log(on_step=True, on_epoch=True, sync_dist=True), as I know it from Lightning.

#include <fmt/format.h>
#include <torch/torch.h>

#include <map>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// trainer.callback_metrics: the newest value under each name.
using CallbackMetrics = std::map<std::string, tasks::Score>;

class Logger {
 public:
  Logger(const tasks::Task& task, torch::Device device, CallbackMetrics& metrics)
      : task_(task), device_(device), metrics_(metrics) {}

  void start(const std::string& name) {
    name_ = name;
    totals_ = task_.no_totals(device_);
  }

  void add(const tasks::Loss& loss) { totals_ += loss.totals(); }

  // Puts the mean so far, over all ranks, under the name.
  void sync_dist() {
    all_reduce(totals_, ReduceOp::SUM);
    metrics_[name_] = task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  CallbackMetrics& metrics_;
  std::string name_;
  torch::Tensor totals_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

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

  CallbackMetrics metrics;
  Logger logger(*task, device, metrics);

  const auto training_step = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(input), target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return loss;
  };

  const auto train_epoch = [&] {
    model->train();
    logger.start("train_loss");
    for (auto& batch : *train_loader) {
      const auto loss = training_step(batch);
      logger.add(loss);
      // All ranks take equally many training steps, so the sum over ranks is safe in every step.
      logger.sync_dist();
      if (!progress.step(loss)) break;
    }
  };

  // Here ranks may have different numbers of batches: once, at the end.
  const auto evaluate = [&](auto& loader, const std::string& name) {
    const torch::NoGradGuard no_grad;
    model->eval();
    logger.start(name);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      logger.add(task->loss(model->forward(input), target));
    }
    logger.sync_dist();
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    train_epoch();
    evaluate(*valid_loader, "val_loss");
    const auto& trained = metrics.at("train_loss");
    const auto& valid = metrics.at("val_loss");
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  evaluate(*test_loader, "test_loss");
  progress.report(metrics.at("test_loss"));
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(metrics.at("test_loss")));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
