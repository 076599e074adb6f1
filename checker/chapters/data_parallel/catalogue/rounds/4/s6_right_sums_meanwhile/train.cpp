// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Net = DistributedDataParallel<tasks::Model>;
using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// Totals that are being added up over the ranks. Nobody else holds the tensor while it travels.
class PendingScore {
 public:
  PendingScore(const tasks::Task& task, torch::Tensor totals)
      : task_(task),
        totals_(std::move(totals)),
        work_(all_reduce_async(totals_, ReduceOp::SUM)) {}

  tasks::Score wait() {
    work_.wait();
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  Work work_;
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, const tasks::Task& task, const World& world,
          size_t train_size)
      : task_(task),
        device_(world.device),
        model_(on_device(task.make_model())),
        optimizer_(task.make_optimizer(model_->parameters())),
        progress_(options, train_size),
        schedule_(task.make_schedule(*optimizer_, progress_.total_steps())) {}

  PendingScore train(Loader& loader) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto loss = step(batch);
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return {task_, std::move(totals)};
  }

  PendingScore evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return {task_, std::move(totals)};
  }

  const Net& model() const { return model_; }
  tasks::Progress& progress() { return progress_; }

 private:
  std::shared_ptr<tasks::Model> on_device(std::shared_ptr<tasks::Model> module) const {
    module->to(device_);
    return module;
  }

  tasks::Loss step(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    optimizer_->zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_->step();
    schedule_->step();
    return loss;
  }

  const tasks::Task& task_;
  torch::Device device_;
  Net model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  Trainer trainer(options, *task, world, *train_set.size());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !trainer.progress().finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    // The sums of training travel while the validation is computed.
    auto training = trainer.train(*train_loader);
    auto validation = trainer.evaluate(*valid_loader);
    const auto trained = training.wait();
    const auto valid = validation.wait();
    trainer.progress().report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*trainer.model(), options.output / "model-best.safetensors");
    }
  }

  const auto test = trainer.evaluate(*test_loader).wait();
  trainer.progress().report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*trainer.model(), options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
