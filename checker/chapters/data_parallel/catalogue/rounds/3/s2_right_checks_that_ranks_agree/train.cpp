// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <stdexcept>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Are the ranks 0 ... size - 1, each once, and does everybody see the same size?
void verify_numbers(const World& world) {
  const auto mine = torch::tensor({int64_t{world.rank}, int64_t{world.world_size}})
                        .to(world.device);
  const auto all = all_gather(mine).cpu();
  for (int64_t r = 0; r < world.world_size; ++r) {
    if (all[r][0].item<int64_t>() != r || all[r][1].item<int64_t>() != world.world_size) {
      throw std::runtime_error(fmt::format("rank {} has another number", r));
    }
  }
}

// Least and greatest element of each parameter over the ranks must be the same.
void verify_equal(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters()) {
    const auto least = parameter.detach().clone();
    const auto most = parameter.detach().clone();
    all_reduce(least, ReduceOp::MIN);
    all_reduce(most, ReduceOp::MAX);
    if (!torch::equal(least, most)) throw std::runtime_error("ranks start from other weights");
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  verify_numbers(world);

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
  model->to(world.device);
  verify_equal(*model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto forward = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };

  const auto train = [&]() -> tasks::Score {
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      const auto loss = forward(batch);
      optimizer->zero_grad();
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };

  const auto evaluate = [&](auto& loader) -> tasks::Score {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) totals += forward(batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
