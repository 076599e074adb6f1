// Step 05 with observers of the training loop: one of them keeps the running loss of all ranks.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Who wants to know what the loop does.
struct Events {
  std::vector<std::function<void(int64_t epoch)>> epoch_begins;
  std::vector<std::function<void(const tasks::Loss& loss)>> batch_done;
};

/// The training loss from the epoch's begin up to now, over all ranks, after every step.
class RunningLoss {
 public:
  RunningLoss(const tasks::Task& task, torch::Device device, Events& events)
      : task_(task), totals_(task.no_totals(device)) {
    events.epoch_begins.push_back([this](int64_t) {
      totals_.zero_();
      curve_.clear();
    });
    events.batch_done.push_back([this](const tasks::Loss& loss) {
      totals_ += loss.totals();
      all_reduce(totals_, ReduceOp::SUM);
      curve_.push_back(task_.score(totals_));
    });
  }

  tasks::Score now() const { return curve_.empty() ? task_.score(totals_) : curve_.back(); }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  std::vector<tasks::Score> curve_;
};

class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const tasks::Options& options, torch::Device device)
      : task_(task), options_(options), device_(device) {}

  tasks::Score operator()(auto& model, const char* split) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task_.dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  const tasks::Options& options_;
  torch::Device device_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Events events;
  events.epoch_begins.push_back([&](int64_t epoch) { sampler.set_epoch(epoch); });
  events.epoch_begins.push_back([&](int64_t) { model->train(); });
  events.batch_done.push_back([&](const tasks::Loss&) { schedule->step(); });
  const RunningLoss running(*task, world.device, events);
  const Evaluator evaluate(*task, options, world.device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    for (const auto& tell : events.epoch_begins) tell(epoch);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      for (const auto& tell : events.batch_done) tell(loss);
      if (!progress.step(loss)) break;
    }
    const auto trained = running.now();
    const auto valid = evaluate(model, "validation");
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = evaluate(model, "test");
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
