// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A score whose sum over the ranks is still under way.
class PendingScore {
 public:
  PendingScore(const tasks::Task& task, torch::Tensor totals)
      : task_(&task), totals_(std::move(totals)), work_(all_reduce_async(totals_)) {}

  tasks::Score get() && {
    work_.wait();
    return task_->score(totals_);
  }

 private:
  const tasks::Task* task_;
  torch::Tensor totals_;
  Work work_;
};

template <typename Model>
class Worker {
 public:
  Worker(const tasks::Task& task, Model model, torch::optim::Optimizer& optimizer,
         tasks::Schedule& schedule, tasks::Progress& progress, torch::Device device)
      : task_(task),
        model_(std::move(model)),
        optimizer_(optimizer),
        schedule_(schedule),
        progress_(progress),
        device_(device) {}

  PendingScore train(auto& loader) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      optimizer_.zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer_.step();
      schedule_.step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return {task_, std::move(totals)};
  }

  PendingScore evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return {task_, std::move(totals)};
  }

 private:
  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }

  const tasks::Task& task_;
  Model model_;
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  tasks::Progress& progress_;
  torch::Device device_;
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
  Worker worker(*task, model, *optimizer, *schedule, progress, device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    // The sum of the training losses travels while the validation runs.
    auto pending_trained = worker.train(*train_loader);
    auto pending_valid = worker.evaluate(*valid_loader);
    const auto trained = std::move(pending_trained).get();
    const auto valid = std::move(pending_valid).get();
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = worker.evaluate(*test_loader).get();
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
