// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Training is shuffled and equally long on all ranks, evaluation is in order and complete.
enum class Role { training, evaluation };

struct Part {
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
  tasks::Dataset samples;
  std::unique_ptr<Loader> loader;
};

Part make_part(const tasks::Task& task, const tasks::Options& options, Role role) {
  const bool training = role == Role::training;
  const auto samples = task.dataset(training ? "train" : "validation");
  DistributedSampler sampler(*samples.size(), {.shuffle = training,
                                               .seed = options.seed,
                                               .drop_last = training,
                                               .pad = false});
  return {samples, data::make_data_loader(
                       samples, sampler,
                       data::DataLoaderOptions(options.batch_size).drop_last(training))};
}

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
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
  const auto training = make_part(*task, options, Role::training);
  const auto validation = make_part(*task, options, Role::evaluation);
  const auto testing = make_part(*task, options, Role::evaluation);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *training.samples.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *training.loader, *optimizer, *schedule, device, progress);
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
