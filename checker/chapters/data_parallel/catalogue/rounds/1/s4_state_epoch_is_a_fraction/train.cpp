// Step 04: The ranks train one model.
// Built like HuggingFace's Trainer: a TrainerState, TrainerCallbacks and a training loop.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What callbacks get to see.
struct TrainerState {
  int64_t global_step = 0;
  int64_t max_steps = 0;
  double epoch = 0;  // how far we are; grows with global_step
  int64_t round = 0;  // for the line that is printed
};

struct TrainerCallback {
  virtual ~TrainerCallback() = default;
  virtual void on_epoch_begin(TrainerState&) {}
  virtual void on_step_end(TrainerState&) {}
  virtual void on_epoch_end(TrainerState&) {}
};

// Keeps the numbers in the state up to date.
struct FlowCallback : TrainerCallback {
  void on_step_end(TrainerState& state) override {
    ++state.global_step;
    state.epoch = static_cast<double>(state.global_step) / static_cast<double>(state.max_steps);
  }
  void on_epoch_end(TrainerState& state) override { ++state.round; }
};

// The DistributedSampler must know the epoch before the loader starts over.
struct SamplerCallback : TrainerCallback {
  explicit SamplerCallback(DistributedSampler& of) : sampler(of) {}
  void on_epoch_begin(TrainerState& state) override {
    sampler.set_epoch(static_cast<uint64_t>(state.epoch));
  }
  DistributedSampler& sampler;
};

class CallbackHandler {
 public:
  void add(std::unique_ptr<TrainerCallback> callback) { all_.push_back(std::move(callback)); }
  void fire(void (TrainerCallback::*event)(TrainerState&), TrainerState& state) {
    for (const auto& callback : all_) (callback.get()->*event)(state);
  }

 private:
  std::vector<std::unique_ptr<TrainerCallback>> all_;
};

tasks::Score evaluation_loop(const tasks::Task& task, auto& model, auto& loader,
                             torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
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

  TrainerState state{.max_steps = progress.total_steps()};
  CallbackHandler callbacks;
  callbacks.add(std::make_unique<FlowCallback>());
  callbacks.add(std::make_unique<SamplerCallback>(train_sampler));

  tasks::Score best;
  while (state.round < options.epochs && !progress.finished()) {
    callbacks.fire(&TrainerCallback::on_epoch_begin, state);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      callbacks.fire(&TrainerCallback::on_step_end, state);
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluation_loop(*task, model, *valid_loader, device);
    callbacks.fire(&TrainerCallback::on_epoch_end, state);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", state.round, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluation_loop(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
