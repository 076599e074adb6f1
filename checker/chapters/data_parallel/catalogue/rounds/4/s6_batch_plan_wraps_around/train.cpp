// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Indices = std::vector<size_t>;

// Which samples a rank looks at, batch by batch. A pure function: no state, no communication. Sample
// i belongs to rank i mod ranks, and all ranks have the same number of batches of the same sizes.
std::vector<Indices> plan(size_t samples, size_t ranks, size_t rank, size_t batch_size) {
  const size_t share = (samples + ranks - 1) / ranks;
  std::vector<Indices> batches;
  for (size_t first = 0; first < share; first += batch_size) {
    Indices batch;
    for (size_t k = first; k < std::min(first + batch_size, share); ++k) {
      batch.push_back((k * ranks + rank) % samples);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// A split that is read by plan. Evaluation has no need of a loader: its order never changes.
struct PlannedSplit {
  tasks::Dataset set;
  std::vector<Indices> batches;

  PlannedSplit(tasks::Dataset split, const World& world, int64_t batch_size)
      : set(std::move(split)),
        batches(plan(*set.size(), static_cast<size_t>(world.world_size),
                     static_cast<size_t>(world.rank), static_cast<size_t>(batch_size))) {}
};

tasks::Score evaluate(const tasks::Task& task, const auto& model, PlannedSplit& split,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (const auto& indices : split.batches) {
    const auto [input, target] = split.set.get_batch(indices).to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score train(const tasks::Task& task, const auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  PlannedSplit validation(task->dataset("validation"), world, options.batch_size);
  PlannedSplit testing(task->dataset("test"), world, options.batch_size);

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, validation, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, testing, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
