// Step 04: The ranks train one model.
// A small Trainer in the manner of HuggingFace Accelerate.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
using Parallel = DistributedDataParallel<tasks::Model>;
using NoSync = DistributedDataParallelBase::NoSync;

// Counts the batches that go into one optimizer step. Here it is one batch, but I want to be able
// to raise that on small GPUs.
class Accumulator {
 public:
  explicit Accumulator(int64_t batches) : batches_(batches) {}

  void next() { ++window_; }
  bool first() const { return window_ == 1; }
  // Further batches of this optimizer step follow.
  bool more_to_come() const { return window_ <= batches_; }
  bool complete() const { return window_ == batches_; }
  void close() { window_ = 0; }
  int64_t batches() const { return batches_; }

 private:
  int64_t batches_;
  int64_t window_ = 0;
};

class Trainer {
 public:
  Trainer(const tasks::Task& task, Parallel model, torch::optim::Optimizer& optimizer,
          tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress)
      : task_(task),
        model_(std::move(model)),
        optimizer_(optimizer),
        schedule_(schedule),
        device_(device),
        progress_(progress) {}

  tasks::Score train_epoch(Loader& loader) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      accumulator_.next();
      const auto loss = training_step(batch);
      totals += loss.totals();
      if (!accumulator_.complete()) continue;
      accumulator_.close();
      optimizer_.step();
      schedule_.step();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return task_.score(totals);
  }

 private:
  // While batches are only accumulated, the gradients stay on their rank: that saves traffic.
  std::unique_ptr<NoSync> keep_local() {
    if (!accumulator_.more_to_come()) return nullptr;
    return std::unique_ptr<NoSync>(new NoSync(model_->no_sync()));
  }

  tasks::Loss training_step(const tasks::Batch& batch) {
    const auto local = keep_local();
    const auto [input, target] = batch.to(device_);
    if (accumulator_.first()) optimizer_.zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    (loss.mean() / accumulator_.batches()).backward();
    return loss;
  }

  const tasks::Task& task_;
  Parallel model_;
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  torch::Device device_;
  tasks::Progress& progress_;
  Accumulator accumulator_{1};
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
  Trainer trainer(*task, model, *optimizer, *schedule, device, progress);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.train_epoch(*train_loader);
    const auto valid = trainer.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
