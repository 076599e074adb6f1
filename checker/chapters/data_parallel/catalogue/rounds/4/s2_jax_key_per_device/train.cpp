// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

// As in JAX: one key, split into one for each device.
struct Key {
  uint64_t value;

  Key fold_in(uint64_t number) const { return {value + number}; }
  void use() const { torch::manual_seed(value); }
};

// What a training step reads and writes.
struct TrainState {
  std::shared_ptr<tasks::Model> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<tasks::Schedule> schedule;
};

using StepFunction = std::function<tasks::Loss(TrainState&, const tasks::Batch&)>;
using LossFunction = std::function<tasks::Loss(TrainState&, const tasks::Batch&)>;

LossFunction loss_function(const tasks::Task& task, torch::Device device) {
  return [&task, device](TrainState& state, const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task.loss(state.model->forward(input), target);
  };
}

StepFunction train_step_function(LossFunction loss_of) {
  return [loss_of = std::move(loss_of)](TrainState& state, const tasks::Batch& batch) {
    state.optimizer->zero_grad();
    auto loss = loss_of(state, batch);
    loss.mean().backward();
    state.optimizer->step();
    state.schedule->step();
    return loss;
  };
}

// Folds batches into totals, until `more` says no.
template <class Loader>
torch::Tensor scan(torch::Tensor carry, Loader& loader, TrainState& state,
                   const LossFunction& function,
                   const std::function<bool(const tasks::Loss&)>& more) {
  for (auto& batch : loader) {
    const auto loss = function(state, batch);
    carry += loss.totals();
    if (!more(loss)) break;
  }
  return carry;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  Key{options.seed}.fold_in(static_cast<uint64_t>(world.rank)).use();

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()),
      data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  tasks::Progress progress(options, *train_set.size());
  TrainState state;
  state.model = task->make_model();
  state.model->to(device);
  state.optimizer = task->make_optimizer(state.model->parameters());
  state.schedule = task->make_schedule(*state.optimizer, progress.total_steps());

  const auto loss_of = loss_function(*task, device);
  const auto step = train_step_function(loss_of);
  const auto train = [&] {
    state.model->train();
    return task->score(scan(task->no_totals(device), *train_loader, state, step,
                            [&](const tasks::Loss& loss) { return progress.step(loss); }));
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    state.model->eval();
    return task->score(scan(task->no_totals(device), loader, state, loss_of,
                            [](const tasks::Loss&) { return true; }));
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
      torch::save(state.model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(state.model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
