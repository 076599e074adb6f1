// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The states of a run, each with one thing to do.
enum class State { open_epoch, train, validate, record, announce, keep_model, test, leave, done };

// Everything that a state may read or write.
struct Memory {
  int64_t epoch = 0;
  tasks::Score trained;
  tasks::Score valid;
  tasks::Score test;
  tasks::Score best;
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

  // One pass over a loader, with or without learning.
  const auto pass = [&](auto& loader, bool learn) {
    const torch::AutoGradMode grad(learn);
    model->train(learn);
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      if (learn) optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if (!learn) continue;
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  const auto more_epochs = [&](const Memory& memory) {
    return memory.epoch < options.epochs && !progress.finished();
  };

  Memory memory;
  auto state = more_epochs(memory) ? State::open_epoch : State::test;
  while (state != State::done) {
    switch (state) {
      case State::open_epoch:
        train_sampler.set_epoch(memory.epoch);
        state = State::train;
        break;
      case State::train:
        memory.trained = pass(*train_loader, true);
        state = State::validate;
        break;
      case State::validate:
        memory.valid = pass(*valid_loader, false);
        state = State::record;
        break;
      case State::record:
        progress.report(memory.trained, memory.valid);
        if (memory.valid < memory.best) memory.best = memory.valid;
        state = State::announce;
        break;
      case State::announce:
        print0("epoch {}/{}: training loss {}, validation loss {}", memory.epoch + 1,
               options.epochs, task->format(memory.trained), task->format(memory.valid));
        state = State::keep_model;
        break;
      case State::keep_model:
        if (memory.valid < memory.best) save0(*model, options.output / "model-best.safetensors");
        ++memory.epoch;
        state = more_epochs(memory) ? State::open_epoch : State::test;
        break;
      case State::test:
        memory.test = pass(*test_loader, false);
        progress.report(memory.test);
        print0("best validation loss: {}", task->describe(memory.best));
        print0("test loss: {}", task->describe(memory.test));
        save0(*model, options.output / "model-final.safetensors");
        state = State::leave;
        break;
      case State::leave:
        destroy_process_group();
        state = State::done;
        break;
      case State::done:
        break;
    }
  }
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
