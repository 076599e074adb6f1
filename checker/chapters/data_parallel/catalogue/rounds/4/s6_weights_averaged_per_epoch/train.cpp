// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Keeps the replicas of a model together. They start from the weights of rank 0. Communication is
// postponed to the end of a training pass, where one message does the work of many.
class Replicas {
 public:
  explicit Replicas(std::shared_ptr<tasks::Model> model) : model_(std::move(model)) {
    const torch::NoGradGuard no_grad;
    for (auto& tensor : tensors()) broadcast(tensor, 0);
  }

  tasks::Model& operator*() const { return *model_; }
  tasks::Model* operator->() const { return model_.get(); }

  // The mean of all replicas becomes the model of everybody.
  void meet() const {
    const torch::NoGradGuard no_grad;
    for (auto& tensor : tensors()) {
      if (tensor.is_floating_point()) all_reduce(tensor, ReduceOp::AVG);
    }
  }

 private:
  std::vector<torch::Tensor> tensors() const {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model_->parameters()) all.push_back(parameter.detach());
    for (const auto& buffer : model_->buffers()) all.push_back(buffer);
    return all;
  }

  std::shared_ptr<tasks::Model> model_;
};

struct Study {
  const tasks::Task& task;
  const Replicas& model;
  torch::Device device;

  tasks::Score sum_up(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score learn(auto& loader, torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model->train();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      optimizer.zero_grad();
      const auto loss = task.loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    model.meet();
    return sum_up(totals);
  }

  tasks::Score look(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return sum_up(totals);
  }
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
  const Replicas model(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Study study{*task, model, device};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = study.learn(*train_loader, *optimizer, *schedule, progress);
    const auto valid = study.look(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = study.look(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
