// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Keeps replicas equal: the same weights at the start, and averaged gradients before every step of
// the optimizer. Looks the gradients up once, since a model's tensors stay the same.
class Replicas {
 public:
  explicit Replicas(const torch::nn::Module& module) : parameters_(module.parameters()) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : parameters_) broadcast(parameter.detach(), 0);
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);
  }

  void average_gradients() {
    if (gradients_.empty()) find_gradients();
    for (const auto& gradient : gradients_) all_reduce(gradient, ReduceOp::AVG);
  }

 private:
  void find_gradients() {
    for (const auto& parameter : parameters_) {
      if (parameter.grad().defined()) gradients_.push_back(parameter.grad());
    }
  }

  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> gradients_;
};

// What training and evaluation share.
struct Setting {
  std::shared_ptr<tasks::Task> task;
  std::shared_ptr<tasks::Model> model;
  torch::Device device;

  tasks::Loss loss_of(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  }

  tasks::Score of_all_ranks(torch::Tensor totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }
};

tasks::Score train(const Setting& setting, Replicas& replicas, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, tasks::Progress& progress) {
  setting.model->train();
  auto totals = setting.task->no_totals(setting.device);
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const auto loss = setting.loss_of(batch);
    loss.mean().backward();
    replicas.average_gradients();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return setting.of_all_ranks(totals);
}

tasks::Score evaluate(const Setting& setting, auto& loader) {
  const torch::NoGradGuard no_grad;
  setting.model->eval();
  auto totals = setting.task->no_totals(setting.device);
  for (auto& batch : loader) totals += setting.loss_of(batch).totals();
  return setting.of_all_ranks(totals);
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

  const Setting setting{task, task->make_model(), device};
  setting.model->to(device);
  Replicas replicas(*setting.model);
  const auto optimizer = task->make_optimizer(setting.model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(setting, replicas, *train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(setting, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*setting.model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(setting, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*setting.model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
