#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The world, joined by whoever asks first; later askers get the same answer.
const World& world(const tasks::Options& options) {
  static const World joined = setup({.backend = options.backend, .device = options.device});
  return joined;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");

  const auto model = task->make_model();
  model->to(world(options).device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // Training and evaluation are one pass over a loader; only `learn` tells them apart.
  const auto pass = [&](auto& loader, bool learn) {
    const torch::AutoGradMode mode(learn);
    model->train(learn);
    auto totals = task->no_totals(world(options).device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world(options).device);
      if (learn) optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if (!learn) continue;
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };
  const auto whole = [&](std::string_view split) {
    const auto set = task->dataset(split);
    const auto loader = data::make_data_loader(set, data::samplers::SequentialSampler(*set.size()),
                                               data::DataLoaderOptions(options.batch_size));
    return pass(*loader, false);
  };

  const auto train_loader =
      data::make_data_loader(train_set, data::samplers::RandomSampler(*train_set.size()),
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  tasks::Score best;
  for (int64_t epoch = 1; epoch <= options.epochs && !progress.finished(); ++epoch) {
    const tasks::Score trained = pass(*train_loader, true), valid = whole("validation");
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) torch::save(model, options.output / "model-best.pt");
    best = std::min<tasks::Score>(best, valid);
  }
  const auto test = whole("test");
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
