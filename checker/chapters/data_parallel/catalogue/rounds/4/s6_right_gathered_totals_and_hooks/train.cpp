// Step 06: the finished trainer. An engine with hooks; totals are gathered and added up.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Every rank gets all ranks' totals, [world_size, ...], and adds them up for itself.
tasks::Score score_of_all(const tasks::Task& task, const torch::Tensor& totals) {
  return task.score(all_gather(totals).sum(0));
}

// What happens in an epoch, in this order.
struct Engine {
  std::function<bool()> wanted;
  std::vector<std::function<void(int64_t)>> before;
  std::function<tasks::Score()> train;
  std::function<tasks::Score()> validate;
  std::vector<std::function<void(int64_t, const tasks::Score&, const tasks::Score&)>> after;

  void run(int64_t epochs) const {
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      if (!wanted()) return;
      for (const auto& hook : before) hook(epoch);
      const auto trained = train();
      const auto valid = validate();
      for (const auto& hook : after) hook(epoch, trained, valid);
    }
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler,
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader = data::make_data_loader(test_set, test_sampler,
                                            data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return score_of_all(*task, totals);
  };

  tasks::Score best;
  Engine engine;
  engine.wanted = [&] { return !progress.finished(); };
  // Copies of a sampler share their epoch with the loader's.
  engine.before.push_back(
      [sampler = train_sampler](int64_t epoch) mutable { sampler.set_epoch(epoch); });
  engine.before.push_back([model](int64_t) { model->train(); });
  engine.train = [&] {
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return score_of_all(*task, totals);
  };
  engine.validate = [&] { return evaluate(*valid_loader); };
  engine.after.push_back([&](int64_t epoch, const auto& trained, const auto& valid) {
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
  });
  engine.after.push_back([&](int64_t, const auto&, const auto& valid) {
    if (!(valid < best)) return;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  });
  engine.run(options.epochs);

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
