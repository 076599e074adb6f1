// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What is evaluated does not change from epoch to epoch: fetch it once, keep it on the device.
template <typename Loader>
const std::vector<tasks::Batch>& kept(Loader& loader, torch::Device device) {
  static const auto batches = [&] {
    std::vector<tasks::Batch> fetched;
    for (auto& batch : loader) fetched.push_back(batch.to(device));
    return fetched;
  }();
  return batches;
}

template <typename Model>
class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const Model& model, torch::Device device)
      : task_(task), model_(model), device_(device) {}

  template <typename Loader>
  tasks::Score operator()(Loader& loader) const {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (const auto& [input, target] : kept(loader, device_)) {
      totals += task_.loss(model_->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  const Model& model_;
  torch::Device device_;
};

template <typename Model>
class Learner {
 public:
  Learner(const tasks::Task& task, const Model& model, torch::optim::Optimizer& optimizer,
          tasks::Schedule& schedule, tasks::Progress& progress, torch::Device device)
      : task_(task),
        model_(model),
        optimizer_(optimizer),
        schedule_(schedule),
        progress_(progress),
        device_(device) {}

  tasks::Score operator()(auto& loader) const {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto loss = step(batch);
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  tasks::Loss step(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    optimizer_.zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_.step();
    schedule_.step();
    return loss;
  }

  const tasks::Task& task_;
  const Model& model_;
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

  const Learner train(*task, model, *optimizer, *schedule, progress, device);
  const Evaluator evaluate(*task, model, device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(*train_loader);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
