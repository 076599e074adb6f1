#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <cstdlib>

// All that the trainer wants to know about where it runs.
struct Place {
  torch::Device device;
  int rank = 0;
  int ranks = 1;

  static Place find(const tasks::Options& options) {
    Place place{options.device.value_or(
        torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU))};
    if (place.device.is_cuda()) {
      const auto world = setup({.backend = options.backend, .device = place.device});
      place.device = world.device;
      place.rank = world.rank;
      place.ranks = world.world_size;
    } else if (const char* text = std::getenv("RANK")) {
      place.rank = std::atoi(text);
    }
    return place;
  }
};

struct Run {
  const tasks::Options& options;
  std::shared_ptr<tasks::Task> task = tasks::make_task(options);
  Place place;

  tasks::Loss loss_of(auto& model, const tasks::Batch& batch) const {
    const auto there = batch.to(place.device);
    return task->loss(model->forward(there.input), there.target);
  }

  tasks::Score score(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(place.device);
    for (auto& batch : loader) totals += loss_of(model, batch).totals();
    return task->score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Run run{.options = options, .place = Place::find(options)};
  const auto& task = run.task;
  const auto device = run.place.device;

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
  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = run.loss_of(model, batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = run.score(model, *valid_loader);
    progress.report(trained, valid);
    ++epoch;
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = run.score(model, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
