// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

namespace {

// Loaders live as long as the program: they are made at the first use, and begin anew every epoch.
auto& training_loader(const tasks::Task& task, const tasks::Options& options) {
  static const auto set = task.dataset("train");
  static const DistributedSampler sampler(
      *set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  static const auto loader = data::make_data_loader(
      set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  return *loader;
}

auto& evaluation_loader(const tasks::Task& task, const tasks::Options& options,
                        std::string_view split) {
  static const auto set = task.dataset(split);
  static const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
  static const auto loader =
      data::make_data_loader(set, sampler, data::DataLoaderOptions(options.batch_size));
  return *loader;
}

struct Run {
  const tasks::Task& task;
  tasks::Model& model;
  torch::Device device;

  tasks::Loss loss(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device);
    return task.loss(model.forward(input), target);
  }

  // Calls `each` with the loss of every batch until that returns false.
  template <class Loader, class Each>
  tasks::Score pass(Loader& loader, Each each) const {
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const bool more = each(batch, totals);
      if (!more) break;
    }
    return task.score(totals);
  }
};

tasks::Score train(const Run& run, auto& loader, auto& optimizer, auto& schedule,
                   tasks::Progress& progress) {
  run.model.train();
  return run.pass(loader, [&](const tasks::Batch& batch, torch::Tensor& totals) {
    optimizer.zero_grad();
    const auto loss = run.loss(batch);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    return progress.step(loss);
  });
}

tasks::Score evaluate(const Run& run, auto& loader) {
  const torch::NoGradGuard no_grad;
  run.model.eval();
  return run.pass(loader, [&](const tasks::Batch& batch, torch::Tensor& totals) {
    totals += run.loss(batch).totals();
    return true;
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  auto& train_loader = training_loader(*task, options);
  auto& valid_loader = evaluation_loader(*task, options, "validation");
  auto& test_loader = evaluation_loader(*task, options, "test");

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *task->dataset("train").size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Run run{*task, *model, device};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(run, train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(run, valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(run, test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
