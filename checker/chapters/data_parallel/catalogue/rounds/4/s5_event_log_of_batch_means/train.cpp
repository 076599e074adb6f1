// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What happened to one batch. Loops only write events; all arithmetic is in the pure functions
// below, after the loop.
struct BatchEvent {
  torch::Tensor totals;  // sum of losses, targets, then the metrics' sums and counts
};
using EventLog = std::vector<BatchEvent>;

// The batch's entry as {mean loss, 1, metrics...}: one event counts as one.
torch::Tensor entry_of(const BatchEvent& event) {
  auto entry = event.totals.clone();
  entry[0] = event.totals[0] / event.totals[1];
  entry[1] = 1;
  return entry;
}

// All events of all ranks, in one message.
tasks::Score digest(const tasks::Task& task, const EventLog& log, torch::Device device) {
  auto sums = task.no_totals(device);
  for (const auto& event : log) sums += entry_of(event);
  all_reduce(sums, ReduceOp::SUM);
  return task.score(sums);
}

template <typename Model, typename Loader>
EventLog train(const tasks::Task& task, const Model& model, Loader& loader,
               torch::optim::Optimizer& optimizer, tasks::Schedule& schedule, torch::Device device,
               tasks::Progress& progress) {
  EventLog log;
  model->train();
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    log.push_back({loss.totals()});
    if (!progress.step(loss)) break;
  }
  return log;
}

template <typename Model, typename Loader>
EventLog evaluate(const tasks::Task& task, const Model& model, Loader& loader,
                  torch::Device device) {
  const torch::NoGradGuard no_grad;
  EventLog log;
  model->eval();
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    log.push_back({task.loss(model->forward(input), target).totals()});
  }
  return log;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto steps = train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto looks = evaluate(*task, model, *valid_loader, device);
    const auto trained = digest(*task, steps, device);
    const auto valid = digest(*task, looks, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = digest(*task, evaluate(*task, model, *test_loader, device), device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
