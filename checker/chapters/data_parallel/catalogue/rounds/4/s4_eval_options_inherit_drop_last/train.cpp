// Step 04: the ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A split with its sampler and its loader.
struct Part {
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  tasks::Dataset set;
  DistributedSampler sampler;
  std::unique_ptr<Loader> loader;

  Part(const tasks::Task& task, const char* name, const DistributedSamplerOptions& dealing,
       const data::DataLoaderOptions& batches)
      : set(task.dataset(name)),
        sampler(*set.size(), dealing),
        loader(data::make_data_loader(set, sampler, batches)) {}
};

tasks::Score train(const tasks::Task& task, auto& model, Part& part, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : *part.loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, Part& part, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : *part.loader) {
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

  // Evaluation deals out as training does, but in order and without repeating samples.
  DistributedSamplerOptions dealing;
  dealing.shuffle = true;
  dealing.seed = options.seed;
  dealing.drop_last = true;
  auto in_order = dealing;
  in_order.shuffle = false;
  in_order.pad = false;

  const auto task = tasks::make_task(options);
  const data::DataLoaderOptions batches(options.batch_size);
  auto full_batches = batches;
  full_batches.drop_last(true);
  Part training(*task, "train", dealing, full_batches);
  Part validation(*task, "validation", in_order, batches);
  Part testing(*task, "test", in_order, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *training.set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    training.sampler.set_epoch(epoch);
    const auto trained = train(*task, model, training, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, validation, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    torch::save(model, options.output / "model-best.pt");
  }

  const auto test = evaluate(*task, model, testing, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
