// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdlib>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everything that a pass over a loader needs; without an optimizer it only evaluates.
struct Context {
  const tasks::Task& task;
  tasks::Model& model;
  torch::Device device;
};

struct Learning {
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;
};

tasks::Score pass(const Context& context, auto& loader, const Learning* learning = nullptr) {
  const torch::AutoGradMode gradients(learning != nullptr);
  context.model.train(learning != nullptr);
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    if (learning != nullptr) learning->optimizer.zero_grad();
    const auto loss = context.task.loss(context.model.forward(input), target);
    totals += loss.totals();
    if (learning == nullptr) continue;
    loss.mean().backward();
    learning->optimizer.step();
    learning->schedule.step();
    if (!learning->progress.step(loss)) break;
  }
  return context.task.score(totals);
}

// In a job srun has started us, and there are others to find. On a workstation we are alone.
bool in_a_job() { return std::getenv("SLURM_PROCID") != nullptr; }

World enter_world(const tasks::Options& options) {
  if (in_a_job()) return setup({.backend = options.backend, .device = options.device});
  const auto device = options.device.value_or(
      torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU));
  return {.rank = 0, .local_rank = 0, .world_size = 1, .device = device};
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = enter_world(options);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Context context{*task, *model, world.device};
  const Learning learning{*optimizer, *schedule, progress};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = pass(context, *train_loader, &learning);
    const auto valid = pass(context, *valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = pass(context, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
