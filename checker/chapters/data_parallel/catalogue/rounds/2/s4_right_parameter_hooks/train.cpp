// Each parameter averages its own gradient by a hook.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Ties the ranks' copies of a model together: equal at the start, equal gradients afterwards.
void tie(tasks::Model& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& tensor : model.parameters()) broadcast(tensor, 0);
  for (const auto& tensor : model.buffers()) broadcast(tensor, 0);
  for (const auto& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    parameter.register_hook([](torch::Tensor gradient) -> torch::Tensor {
      auto mean = gradient.detach().clone();
      all_reduce(mean, ReduceOp::SUM);
      return mean / get_world_size();
    });
  }
}

tasks::Score train(const tasks::Task& task, tasks::Model& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model.train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model.forward(input), target);
    loss.mean().backward();  // the hooks talk in here
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, tasks::Model& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model.eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model.forward(input), target).totals();
  }
  return task.score(totals);
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
  const auto in_order = [](const tasks::Dataset& set) {
    return DistributedSampler(*set.size(), {.shuffle = false, .pad = false});
  };
  const data::DataLoaderOptions batches(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, in_order(valid_set), batches);
  auto test_loader = data::make_data_loader(test_set, in_order(test_set), batches);

  const auto model = task->make_model();
  model->to(device);
  tie(*model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, *model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, *model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = evaluate(*task, *model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
