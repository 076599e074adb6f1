// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <array>
#include <functional>
#include <map>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

enum class Phase { training, validation, bookkeeping, test, closing, left };

// Which phase follows. A pure function, so that it can be tested without a model.
Phase after(Phase phase, bool another_epoch) {
  switch (phase) {
    case Phase::training: return Phase::validation;
    case Phase::validation: return Phase::bookkeeping;
    case Phase::bookkeeping: return another_epoch ? Phase::training : Phase::test;
    case Phase::test: return Phase::closing;
    case Phase::closing: return Phase::left;
    case Phase::left: return Phase::left;
  }
  return Phase::left;
}

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

  int64_t epoch = 0;
  tasks::Score trained, valid, best, test;

  const auto global = [&](const torch::Tensor& totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return global(totals);
  };

  const std::map<Phase, std::function<void()>> work{
      {Phase::training,
       [&] {
         train_sampler.set_epoch(epoch);
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
           if (!progress.step(loss)) break;
         }
         trained = global(totals);
       }},
      {Phase::validation, [&] { valid = evaluate(*valid_loader); }},
      {Phase::bookkeeping,
       [&] {
         progress.report(trained, valid);
         print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                task->format(trained), task->format(valid));
         if (valid < best) {
           best = valid;
           save0(*model, options.output / "model-best.safetensors");
         }
         ++epoch;
       }},
      {Phase::test,
       [&] {
         test = evaluate(*test_loader);
         progress.report(test);
       }},
      {Phase::closing,
       [&] {
         print0("best validation loss: {}", task->describe(best));
         print0("test loss: {}", task->describe(test));
         save0(*model, options.output / "model-final.safetensors");
         destroy_process_group();
       }},
  };

  const auto another_epoch = [&] { return epoch < options.epochs && !progress.finished(); };
  for (auto phase = another_epoch() ? Phase::training : Phase::test; phase != Phase::left;
       phase = after(phase, another_epoch())) {
    work.at(phase)();
  }
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
