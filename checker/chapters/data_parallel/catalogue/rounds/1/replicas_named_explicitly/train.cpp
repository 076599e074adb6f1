// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <stdexcept>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

// Do the shares of all ranks make up the whole split, but for less than a sample a rank?
void check_shares(const DistributedSampler& sampler, size_t whole, size_t left_out,
                  const World& world) {
  const auto dealt = torch::tensor(
      {static_cast<int64_t>(sampler.size())},
      torch::TensorOptions(torch::kInt64).device(world.device));
  all_reduce(dealt, ReduceOp::SUM);
  if (dealt.item<int64_t>() != static_cast<int64_t>(whole - left_out))
    throw std::logic_error("the ranks do not share all of the samples");
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSampler train_sampler(*train_set.size(), {
      .shuffle = true,
      .seed = options.seed,
      .drop_last = true,
      .num_replicas = world.world_size,
      .rank = world.rank,
  });
  const auto whole = [&](const tasks::Dataset& split) {
    return DistributedSampler(*split.size(), {
        .shuffle = false,
        .pad = false,
        .num_replicas = world.world_size,
        .rank = world.rank,
    });
  };
  const auto valid_sampler = whole(valid_set);
  const auto test_sampler = whole(test_set);
  check_shares(train_sampler, *train_set.size(), *train_set.size() % world.world_size, world);
  check_shares(valid_sampler, *valid_set.size(), 0, world);
  check_shares(test_sampler, *test_set.size(), 0, world);

  const auto loader = [&](const tasks::Dataset& split, const DistributedSampler& sampler,
                          bool only_full) {
    return data::make_data_loader(
        split, sampler, data::DataLoaderOptions(options.batch_size).drop_last(only_full));
  };

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    auto train_loader = loader(train_set, train_sampler, true);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    auto valid_loader = loader(valid_set, valid_sampler, false);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  auto test_loader = loader(test_set, test_sampler, false);
  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
