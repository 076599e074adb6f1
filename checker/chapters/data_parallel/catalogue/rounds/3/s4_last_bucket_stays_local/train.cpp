// Step 04: one model on all ranks, gradients averaged by hand in buckets.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Averages gradients over the ranks, many small ones in one message.
class Buckets {
 public:
  Buckets(std::vector<torch::Tensor> parameters, int64_t cap)
      : parameters_(std::move(parameters)), cap_(cap) {
    for (const auto& parameter : parameters_) broadcast(parameter.detach(), 0);
  }

  // To be called between backward() and the optimizer's step.
  void average() {
    for (const auto& parameter : parameters_) {
      const auto& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      // A bucket travels when the next gradient does not fit any more.
      if (elements_ > 0 && elements_ + gradient.numel() > cap_) flush();
      bucket_.push_back(gradient);
      elements_ += gradient.numel();
    }
    bucket_.clear();
    elements_ = 0;
  }

 private:
  void flush() {
    std::vector<torch::Tensor> rows;
    for (const auto& gradient : bucket_) rows.push_back(gradient.reshape({-1}));
    const auto flat = torch::cat(rows);
    all_reduce(flat, ReduceOp::AVG);
    int64_t offset = 0;
    for (auto& gradient : bucket_) {
      gradient.copy_(flat.narrow(0, offset, gradient.numel()).view_as(gradient));
      offset += gradient.numel();
    }
    bucket_.clear();
    elements_ = 0;
  }

  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> bucket_;
  int64_t cap_;
  int64_t elements_ = 0;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   Buckets& buckets, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    buckets.average();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
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

  const auto model = task->make_model();
  model->to(device);
  Buckets buckets(model->parameters(), 16384);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, buckets, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
