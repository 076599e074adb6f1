// Step 04: The ranks train one model.
// A loop with hooks, as in Lightning: whoever wants to do something at some moment registers it.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Named events with any number of listeners, which run in the order in which they came.
class Hooks {
 public:
  using Listener = std::function<void(int64_t epoch)>;
  void on(const std::string& event, Listener listener) {
    listeners_[event].push_back(std::move(listener));
  }
  void fire(const std::string& event, int64_t epoch) {
    for (const auto& listener : listeners_[event]) listener(epoch);
  }

 private:
  std::map<std::string, std::vector<Listener>> listeners_;
};

// Copies of a DistributedSampler share their epoch, so the listener may have one of its own.
Hooks::Listener reshuffle(DistributedSampler sampler) {
  return [sampler](int64_t epoch) mutable { sampler.set_epoch(static_cast<uint64_t>(epoch)); };
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const torch::Device device = world.device;
  const auto task = tasks::make_task(options);
  Hooks hooks;

  const auto train_set = task->dataset("train");
  auto train_loader = [&] {
    const DistributedSampler sampler(*train_set.size(),
                                     {.shuffle = true, .seed = options.seed, .drop_last = true});
    hooks.on("train_epoch_start", reshuffle(sampler));
    return data::make_data_loader(train_set, sampler,
                                  data::DataLoaderOptions(options.batch_size).drop_last(true));
  }();
  const auto loader_of = [&](const std::string& split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = loader_of("validation");
  auto test_loader = loader_of("test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // Modes are hooks as well.
  hooks.on("train_epoch_start", [&](int64_t) { model->train(); });
  hooks.on("evaluation_start", [&](int64_t) { model->eval(); });

  const auto evaluate = [&](auto& loader, int64_t epoch) {
    const torch::NoGradGuard no_grad;
    hooks.fire("evaluation_start", epoch);
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  };

  tasks::Score trained;
  tasks::Score valid;
  tasks::Score best;
  hooks.on("validation_end", [&](int64_t) { progress.report(trained, valid); });
  hooks.on("validation_end", [&](int64_t epoch) {
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
  });
  hooks.on("validation_end", [&](int64_t) {
    if (!(valid < best)) return;
    best = valid;
    torch::save(model, options.output / "model-best.pt");
  });

  int64_t epoch = 0;
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    hooks.fire("train_epoch_start", epoch);
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
    trained = task->score(totals);
    valid = evaluate(*valid_loader, epoch);
    hooks.fire("validation_end", epoch);
  }

  const auto test = evaluate(*test_loader, epoch);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
