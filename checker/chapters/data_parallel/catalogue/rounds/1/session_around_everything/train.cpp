// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// From joining to leaving.
struct Session {
  explicit Session(const tasks::Options& options)
      : world(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() { destroy_process_group(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  const World world;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const Session session(options);
  const torch::Device device = session.world.device;

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

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto pass = [&](auto& loader, bool training) {
    const torch::AutoGradMode gradients(training);
    model->train(training);
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      if (training) optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if (!training) continue;
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = pass(*train_loader, true);
    const auto valid = pass(*valid_loader, false);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = pass(*test_loader, false);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
