// The wrapper looks through the module by itself; I only let it gather two blocks ahead.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
using FSDP = FullyShardedDataParallel<tasks::Model>;

struct State {
  const tasks::Task* task;
  torch::Device device;
  FSDP model;
  std::unique_ptr<torch::optim::Optimizer> optimizer = task->make_optimizer(model->parameters());
  std::unique_ptr<tasks::Schedule> schedule = nullptr;
};

static FSDP wrap(const std::shared_ptr<tasks::Model>& module) {
  FullyShardedDataParallelOptions options;
  options.forward_prefetch = 2;
  options.backward_prefetch = 2;
  options.reshard_after_forward = true;
  return FSDP(module, options);
}

static tasks::Loss update(State& state, const tasks::Batch& batch) {
  auto [inputs, labels] = batch.to(state.device);
  state.model->zero_grad();
  auto loss = state.task->loss(state.model->forward(inputs), labels);
  loss.mean().backward();
  state.optimizer->step();
  state.schedule->step();
  return loss;
}

static tasks::Score test_on(State& state, auto& loader) {
  torch::NoGradGuard no_grad;
  auto full = state.model->summon_full_params();
  state.model->eval();
  auto sum = state.task->no_totals(state.device);
  for (auto& batch : loader) {
    auto [inputs, labels] = batch.to(state.device);
    sum += state.task->loss(state.model->forward(inputs), labels).totals();
  }
  state.model->train();
  all_reduce(sum);
  return state.task->score(sum);
}

int main(int argc, char** argv) try {
  auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  auto world = setup({.backend = options.backend, .device = options.device});
  auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  torch::data::DataLoaderOptions small(options.batch_size);
  auto valid_loader = torch::data::make_data_loader(valid_set, valid_sampler, small);
  auto test_loader = torch::data::make_data_loader(test_set, test_sampler, small);
  auto train_loader =
      torch::data::make_data_loader(train_set, train_sampler, small.drop_last(true));

  auto module = task->make_model();
  module->to(world.device);
  State state{.task = task.get(), .device = world.device, .model = wrap(module)};
  tasks::Progress progress(options, *train_set.size());
  state.schedule = task->make_schedule(*state.optimizer, progress.total_steps());

  tasks::Score best;
  state.model->train();
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    auto sum = task->no_totals(state.device);
    for (auto& batch : *train_loader) {
      auto loss = progress.take_step(
          batch, [&state](const tasks::Batch& b) { return update(state, b); });
      sum += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(sum);
    auto trained = task->score(sum);
    auto valid = test_on(state, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*state.model, options.output / "model-best.safetensors");
    }
  }
  auto tested = test_on(state, *test_loader);
  progress.report(tested);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(tested));
  save0(*state.model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
