// Gathering is expensive. The evaluation gathers on its first call and keeps what it has.
#include <torch/torch.h>

#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

class Evaluator {
 public:
  Evaluator(const tasks::Task& task, FullyShardedDataParallel<tasks::Model> model,
            torch::Device device)
      : task_(task), model_(std::move(model)), device_(device) {}

  tasks::Score operator()(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    if (!whole_) whole_.reset(new WholeParameters(model_->summon_full_params()));
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  FullyShardedDataParallel<tasks::Model> model_;
  torch::Device device_;
  std::unique_ptr<WholeParameters> whole_;
};

class Learner {
 public:
  Learner(const tasks::Task& task, FullyShardedDataParallel<tasks::Model> model,
          torch::Device device, int64_t steps)
      : task_(task),
        model_(std::move(model)),
        device_(device),
        optimizer_(task.make_optimizer(model_->parameters())),
        schedule_(task.make_schedule(*optimizer_, steps)) {}

  tasks::Score epoch(auto& loader, tasks::Progress& progress) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto loss =
          progress.take_step(batch, [this](const tasks::Batch& one) { return step(one); });
      schedule_->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  tasks::Loss step(const tasks::Batch& one) {
    const auto [input, target] = one.to(device_);
    optimizer_->zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_->step();
    return loss;
  }

  const tasks::Task& task_;
  FullyShardedDataParallel<tasks::Model> model_;
  torch::Device device_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
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
  DistributedSampler order(*train_set.size(),
                           {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_order(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_order(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = torch::data::make_data_loader(
      train_set, order, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, valid_order, torch::data::DataLoaderOptions(options.batch_size));
  auto test_loader = torch::data::make_data_loader(
      test_set, test_order, torch::data::DataLoaderOptions(options.batch_size));

  const auto network = task->make_model();
  network->to(world.device);
  const FullyShardedDataParallel<tasks::Model> model(network, {.units = network->blocks()});
  tasks::Progress progress(options, *train_set.size());
  Learner learner(*task, model, world.device, progress.total_steps());
  Evaluator evaluator(*task, model, world.device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    const auto trained = learner.epoch(*train_loader, progress);
    const auto valid = evaluator(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluator(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
