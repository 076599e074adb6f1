// Step 06: the finished trainer. A rank that is alone needs no wrapper.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The model that is trained, as functions. Alone it is the module itself; with others it goes
// through DistributedDataParallel.
class Net {
 public:
  Net(std::shared_ptr<tasks::Model> module, int world_size) : module_(std::move(module)) {
    if (world_size == 1) {
      forward_ = [module = module_](const tasks::Input& input) { return module->forward(input); };
      return;
    }
    wrapped_.emplace(module_);
    forward_ = [wrapped = *wrapped_](const tasks::Input& input) { return wrapped->forward(input); };
  }

  torch::Tensor operator()(const tasks::Input& input) const { return forward_(input); }

  void mode(bool training) {
    module_->train(training);
    if (wrapped_) (*wrapped_)->train(training);
  }
  // The wrapper's parameters are the module's own.
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  const tasks::Model& module() const { return *module_; }

 private:
  std::shared_ptr<tasks::Model> module_;
  std::optional<DistributedDataParallel<tasks::Model>> wrapped_;
  std::function<torch::Tensor(const tasks::Input&)> forward_;
};

tasks::Score train(const tasks::Task& task, Net& net, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  net.mode(/*training=*/true);
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(net(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, Net& net, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  net.mode(/*training=*/false);
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(net(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

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
  Net net(module, world_size);
  const auto optimizer = task->make_optimizer(net.parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(*task, net, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, net, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(net.module(), options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, net, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(net.module(), options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
