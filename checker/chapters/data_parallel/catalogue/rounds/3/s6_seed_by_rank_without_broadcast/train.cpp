#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Every rank its own dropout masks, please: the generators start differently.
torch::Device join(const tasks::Options& options) {
  const auto world = setup({.backend = options.backend, .device = options.device});
  torch::manual_seed(options.seed + world.rank);
  return world.device;
}

void synchronise(const torch::nn::Module& module) {
  const double share = 1.0 / get_world_size();
  for (const auto& parameter : module.parameters()) {
    auto gradient = parameter.grad();
    if (!gradient.defined()) continue;
    all_reduce(gradient, ReduceOp::SUM);
    gradient.mul_(share);
  }
}

template <class Visit>
tasks::Score over(const tasks::Task& task, auto& loader, torch::Device device, Visit visit) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = visit(batch.to(device));
    if (!loss) continue;
    totals += loss->first.totals();
    if (!loss->second) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = join(options);
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto some = data::DataLoaderOptions(options.batch_size);
  const auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader = data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}), some);
  const auto test_loader = data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}), some);
  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  using Seen = std::optional<std::pair<tasks::Loss, bool>>;
  const auto learn = [&](const tasks::Batch& batch) -> Seen {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    synchronise(*model);
    optimizer->step();
    schedule->step();
    return std::pair(loss, progress.step(loss));
  };
  const auto look = [&](const tasks::Batch& batch) -> Seen {
    const torch::NoGradGuard no_grad;
    return std::pair(task->loss(model->forward(batch.input), batch.target), true);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    const auto trained = over(*task, *train_loader, device, learn);
    model->eval();
    const auto valid = over(*task, *valid_loader, device, look);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = over(*task, *test_loader, device, look);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
