// Step 04: the ranks train one model. Sets are made by a helper that hands out two functions.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// A loader, and how to tell it the epoch. The sampler that was kept is a copy of the loader's; the
// two share their epoch.
struct Source {
  std::unique_ptr<Loader> loader;
  std::function<void(int64_t)> begin_epoch;
};

Source make_source(const tasks::Dataset& set, const tasks::Options& options, bool training) {
  DistributedSamplerOptions how;
  how.shuffle = training;
  how.drop_last = training;
  how.pad = false;
  if (training) {
    how.pad = true;
    how.seed = options.seed;
  }
  DistributedSampler sampler(*set.size(), how);
  auto loader = data::make_data_loader(
      set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(training));
  return {std::move(loader),
          [sampler](int64_t epoch) mutable { sampler.set_epoch(static_cast<uint64_t>(epoch)); }};
}

template <typename Model>
tasks::Loss loss_of(const tasks::Task& task, Model& model, const tasks::Batch& batch) {
  return task.loss(model->forward(batch.input), batch.target);
}

tasks::Score train(const tasks::Task& task, auto& model, Loader& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const auto loss = loss_of(task, model, batch.to(device));
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, Loader& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) totals += loss_of(task, model, batch.to(device)).totals();
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto training = make_source(train_set, options, true);
  const auto validation = make_source(task->dataset("validation"), options, false);
  const auto testing = make_source(task->dataset("test"), options, false);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const auto start = std::chrono::steady_clock::now();
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    training.begin_epoch(epoch);
    const auto trained =
        train(*task, model, *training.loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *validation.loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    torch::save(model, options.output / "model-best.pt");
  }
  if (rank == 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "{} ranks trained for {:.2f} s\n", world_size, passed.count());
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
