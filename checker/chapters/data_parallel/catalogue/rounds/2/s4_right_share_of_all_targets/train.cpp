// Every target of a step counts the same, whichever rank it is on.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

struct Splits {
  tasks::Dataset train, valid, test;
};

struct Context {
  const tasks::Task& task;
  torch::Device device;
  int world_size;
};

// What backward() starts from. The wrapper is going to divide by the number of ranks, so we
// multiply by it: together that is the gradient of (sum over all ranks) / (targets of all ranks).
torch::Tensor start_of_backward(const Context& context, const tasks::Loss& loss) {
  const auto targets = torch::tensor(
      {static_cast<double>(loss.count)},
      torch::TensorOptions().dtype(torch::kFloat64).device(context.device));
  all_reduce(targets);
  return loss.sum * (context.world_size / targets.item<double>());
}

tasks::Score train(const Context& context, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, tasks::Progress& progress) {
  model->train();
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    const auto loss = context.task.loss(model->forward(input), target);
    model->zero_grad();
    start_of_backward(context, loss).backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return context.task.score(totals);
}

tasks::Score evaluate(const Context& context, auto& model, auto& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    totals += context.task.loss(model->forward(input), target).totals();
  }
  return context.task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const Context context{*task, world.device, world.world_size};
  const Splits sets{task->dataset("train"), task->dataset("validation"), task->dataset("test")};

  DistributedSampler sampler(*sets.train.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions exact{.shuffle = false, .pad = false};
  auto batches = data::DataLoaderOptions(options.batch_size);
  auto valid_loader =
      data::make_data_loader(sets.valid, DistributedSampler(*sets.valid.size(), exact), batches);
  auto test_loader =
      data::make_data_loader(sets.test, DistributedSampler(*sets.test.size(), exact), batches);
  auto train_loader = data::make_data_loader(sets.train, sampler, batches.drop_last(true));

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *sets.train.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    sampler.set_epoch(epoch++);
    const auto trained = train(context, model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(context, model, *valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = evaluate(context, model, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
