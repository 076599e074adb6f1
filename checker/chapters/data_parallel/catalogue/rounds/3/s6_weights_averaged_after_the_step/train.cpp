#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Keeps the replicas together: after each step all of them hold the mean of their weights.
class Ensemble {
 public:
  Ensemble(std::shared_ptr<tasks::Model> model, const tasks::Task& task) : model_(std::move(model)), optimizer_(task.make_optimizer(model_->parameters())) {
    const torch::NoGradGuard no_grad;
    for (const auto& tensor : model_->parameters()) broadcast(tensor, 0);
    for (const auto& tensor : model_->buffers()) broadcast(tensor, 0);
  }

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  tasks::Model& model() { return *model_; }

  tasks::Loss learn(const tasks::Task& task, const tasks::Batch& batch) {
    optimizer_->zero_grad();
    const auto loss = task.loss(model_->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer_->step();
    meet();
    return loss;
  }

 private:
  void meet() {
    const torch::NoGradGuard no_grad;
    std::vector<Work> works;
    for (const auto& tensor : model_->parameters()) works.push_back(all_reduce_async(tensor, ReduceOp::AVG));
    for (auto& work : works) work.wait();
  }

  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto net = task->make_model();
  net->to(world.device);
  Ensemble ensemble(net, *task);
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(ensemble.optimizer(), progress.total_steps());

  const auto judge = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    ensemble.model().eval();
    auto set = task->dataset(split);
    auto totals = task->no_totals(world.device);
    const auto batches = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    for (auto& batch : *batches) {
      const auto here = batch.to(world.device);
      totals += task->loss(ensemble.model().forward(here.input), here.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    ensemble.model().train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto loss = ensemble.learn(*task, batch.to(world.device));
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = judge("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(ensemble.model(), options.output / "model-best.safetensors");
    }
  }
  const auto test = judge("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(ensemble.model(), options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
