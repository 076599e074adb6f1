// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// Our clusters block ports between nodes, so the ranks meet through the file system. The file must
// not exist yet; with the process id in its name no left-over of an older run is in the way.
std::string meeting_point(const tasks::Options& options) {
  const fs::path file = fs::absolute(options.output) / fmt::format("meet-{}", getpid());
  fs::remove(file);
  return "file://" + file.string();
}

struct Phase {
  const tasks::Task& task;
  torch::Device device;
  torch::Tensor totals;

  Phase(const tasks::Task& t, torch::Device d) : task(t), device(d), totals(t.no_totals(d)) {}

  tasks::Loss forward(auto& model, const tasks::Batch& batch) {
    const auto there = batch.to(device);
    const auto loss = task.loss(model->forward(there.input), there.target);
    totals += loss.totals();
    return loss;
  }

  tasks::Score result() const { return task.score(totals); }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend,
             .device = options.device,
             .init_method = meeting_point(options)});

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
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto measure = [&, device = device](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    Phase phase(*task, device);
    for (auto& batch : loader) phase.forward(model, batch);
    return phase.result();
  };

  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    ++epoch;
    model->train();
    Phase training(*task, device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = training.forward(model, batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    const auto trained = training.result();
    const auto valid = measure(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = measure(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
