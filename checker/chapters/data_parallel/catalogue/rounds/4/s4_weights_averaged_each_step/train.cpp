// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The same model on every rank, as MPI programs do it: weights are a vector that all ranks share.
class Replicated {
 public:
  Replicated(std::shared_ptr<tasks::Model> model, int world_size)
      : model_(std::move(model)), world_size_(world_size) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model_->parameters()) broadcast(parameter.detach(), 0);
    for (const auto& buffer : model_->buffers()) broadcast(buffer.detach(), 0);
  }

  tasks::Model* operator->() const { return model_.get(); }
  const std::shared_ptr<tasks::Model>& local() const { return model_; }

  // Brings the replicas together again: MPI_Allreduce, then divide by the size.
  void agree() const {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model_->parameters()) {
      auto weights = parameter.detach();
      all_reduce(weights, ReduceOp::SUM);
      weights.div_(world_size_);
    }
  }

 private:
  std::shared_ptr<tasks::Model> model_;
  int world_size_;
};

tasks::Loss train_step(const tasks::Task& task, const Replicated& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto loss = task.loss(model->forward(input), target);
  loss.mean().backward();
  optimizer.step();
  model.agree();
  return loss;
}

tasks::Score train(const tasks::Task& task, const Replicated& model, auto& loader,
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const Replicated& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
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
  const Replicated model(module, world_size);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(static_cast<uint64_t>(epoch));
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model.local(), options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model.local(), options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
