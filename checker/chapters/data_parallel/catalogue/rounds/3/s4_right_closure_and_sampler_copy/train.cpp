// Step 04: the step as a closure of the optimizer, the epoch through a copy of the sampler.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A split as a trainer sees it. The sampler here is a copy of the loader's; copies share the epoch.
template <class Loader>
struct Split {
  Split(Loader made, const DistributedSampler& dealer)
      : loader(std::move(made)), sampler(dealer) {}

  Loader loader;
  DistributedSampler sampler;

  auto& epoch(uint64_t number) {
    sampler.set_epoch(number);
    return *loader;
  }
};

auto make_split(const tasks::Dataset& set, const DistributedSamplerOptions& dealing,
                const data::DataLoaderOptions& loading) {
  const DistributedSampler sampler(*set.size(), dealing);
  return Split(data::make_data_loader(set, sampler, loading), sampler);
}

// Takes one training step. The optimizer itself asks for the gradients.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  std::optional<tasks::Loss> loss;
  const auto& inputs = input;
  const auto& targets = target;
  optimizer.step([&] {
    optimizer.zero_grad();
    loss = task.loss(model->forward(inputs), targets);
    auto mean = loss->mean();
    mean.backward();
    return mean;
  });
  return *loss;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
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
  const DistributedSamplerOptions exact{.shuffle = false, .pad = false};
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto training = make_split(train_set,
                             {.shuffle = true, .seed = options.seed, .drop_last = true},
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto validation = make_split(task->dataset("validation"), exact, batches);
  auto testing = make_split(task->dataset("test"), exact, batches);

  const auto module = task->make_model();
  module->to(device);
  const DistributedDataParallel model(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, training.epoch(epoch), *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *validation.loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *testing.loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
