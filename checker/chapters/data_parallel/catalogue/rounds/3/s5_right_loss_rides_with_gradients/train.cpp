// Step 05: in training the loss travels with the gradients, in one message a step.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everything that a step sends: all gradients and the batch's totals, in double precision so that
// large counts stay exact.
class Message {
 public:
  explicit Message(const torch::nn::Module& module)
      : parameters_(module.parameters()), world_size_(get_world_size()) {
    for (const auto& parameter : parameters_) broadcast(parameter.detach(), 0);
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);
  }

  // Averages the gradients over the ranks and returns the sum of their totals.
  torch::Tensor exchange(const torch::Tensor& totals) const {
    std::vector<torch::Tensor> parts;
    for (const auto& parameter : parameters_) {
      if (parameter.grad().defined()) {
        parts.push_back(parameter.grad().reshape({-1}).to(torch::kDouble));
      }
    }
    parts.push_back(totals.reshape({-1}));
    const auto message = torch::cat(parts);
    all_reduce(message, ReduceOp::SUM);
    int64_t from = 0;
    for (const auto& parameter : parameters_) {
      if (!parameter.grad().defined()) continue;
      const auto size = parameter.grad().numel();
      parameter.grad().copy_(
          message.narrow(0, from, size).div(world_size_).view(parameter.sizes()));
      from += size;
    }
    return message.narrow(0, from, totals.numel()).view(totals.sizes());
  }

 private:
  std::vector<torch::Tensor> parameters_;
  int world_size_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   const Message& message, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    totals += message.exchange(loss.totals());
    optimizer.step();
    schedule.step();
    if (!progress.step(loss)) break;
  }
  // These are everybody's already.
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

  const auto model = task->make_model();
  model->to(device);
  const Message message(*model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, message, *schedule, device, progress);
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
