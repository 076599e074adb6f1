// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What happens around the epochs, as lists of functions, so that the loop itself need not know.
struct Events {
  using EpochBegins = std::function<void(int64_t epoch)>;
  using EpochEnds = std::function<void(int64_t epoch, const tasks::Score&, const tasks::Score&)>;
  using RunEnds = std::function<void(const tasks::Score& test)>;

  std::vector<EpochBegins> epoch_begins;
  std::vector<EpochEnds> epoch_ends;
  std::vector<RunEnds> run_ends;

  template <typename Listeners, typename... Args>
  static void tell(const Listeners& listeners, const Args&... args) {
    for (const auto& listener : listeners) listener(args...);
  }
};

template <typename Model>
class Engine {
 public:
  Engine(const tasks::Task& task, Model model, torch::Device device)
      : task_(task), model_(std::move(model)), device_(device) {}

  tasks::Score train(auto& loader, auto& optimizer, auto& schedule, auto& progress) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      optimizer.zero_grad();
      const auto loss = task_.loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return finish(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return finish(totals);
  }

 private:
  tasks::Score finish(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

  const tasks::Task& task_;
  Model model_;
  torch::Device device_;
};

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
  Engine engine(*task, model, device);
  tasks::Score best;

  Events events;
  events.epoch_begins.push_back([&](int64_t epoch) { train_sampler.set_epoch(epoch); });
  events.epoch_ends.push_back([&](int64_t, const auto& trained, const auto& valid) {
    progress.report(trained, valid);
  });
  events.epoch_ends.push_back([&](int64_t epoch, const auto& trained, const auto& valid) {
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
  });
  events.epoch_ends.push_back([&](int64_t, const auto&, const auto& valid) {
    if (!(valid < best)) return;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  });
  events.run_ends.push_back([&](const auto& test) { progress.report(test); });
  events.run_ends.push_back([task, best](const auto& test) {
    print0("best validation loss: {}", task->describe(best));
    print0("test loss: {}", task->describe(test));
  });
  events.run_ends.push_back(
      [&](const auto&) { save0(*model, options.output / "model-final.safetensors"); });

  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    Events::tell(events.epoch_begins, epoch);
    const auto trained = engine.train(*train_loader, *optimizer, *schedule, progress);
    const auto valid = engine.evaluate(*valid_loader);
    Events::tell(events.epoch_ends, epoch, trained, valid);
  }
  Events::tell(events.run_ends, engine.evaluate(*test_loader));
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
