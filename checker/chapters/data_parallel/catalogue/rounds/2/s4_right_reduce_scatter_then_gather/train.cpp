// All-reduce in two halves: each rank averages a slice, then all collect the slices.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

class SlicedAverage {
 public:
  explicit SlicedAverage(std::vector<torch::Tensor> parameters, torch::nn::Module& model)
      : parameters_(std::move(parameters)), ranks_(get_world_size()) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters_) broadcast(parameter, 0);
    for (auto& buffer : model.buffers()) broadcast(buffer, 0);
  }

  void operator()() const {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : parameters_)
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    std::vector<torch::Tensor> flat;
    int64_t length = 0;
    for (const auto& gradient : gradients) {
      flat.push_back(gradient.reshape({-1}));
      length += gradient.numel();
    }
    // Zeros at the end make the slices equally long.
    const auto rest = (ranks_ - length % ranks_) % ranks_;
    flat.push_back(torch::zeros({rest}, flat.front().options()));
    auto slice = reduce_scatter(torch::cat(flat), ReduceOp::SUM);
    slice /= ranks_;
    const auto whole = all_gather(slice).reshape({-1});
    int64_t at = 0;
    for (const auto& gradient : gradients) {
      gradient.copy_(whole.narrow(0, at, gradient.numel()).view_as(gradient));
      at += gradient.numel();
    }
  }

 private:
  std::vector<torch::Tensor> parameters_;
  int64_t ranks_;
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
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(world.device);
  const SlicedAverage average(model->parameters(), *model);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      average();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
