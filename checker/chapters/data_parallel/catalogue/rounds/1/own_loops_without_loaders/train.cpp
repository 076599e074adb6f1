// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/setup.hpp"

namespace samplers = torch::data::samplers;

// Calls `work` with each batch until it returns false.
template <typename Sampler, typename Work>
void each_batch(tasks::Dataset dataset, Sampler& sampler, int64_t size, bool whole_only, Work&& work) {
  sampler.reset();
  while (const auto indices = sampler.next(static_cast<size_t>(size))) {
    if (whole_only && static_cast<int64_t>(indices->size()) < size) return;
    if (!work(dataset.get_batch(*indices))) return;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const distributed_utils::World me = distributed_utils::setup({
      .backend = options.backend,
      .device = options.device,
  });

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  samplers::RandomSampler shuffled(*train_set.size());
  samplers::SequentialSampler valid_order(*valid_set.size());
  samplers::SequentialSampler test_order(*test_set.size());

  const auto model = task->make_model();
  model->to(me.device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(me.device);
    each_batch(train_set, shuffled, options.batch_size, true, [&](const tasks::Batch& batch) {
      const auto on_device = batch.to(me.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(on_device.input), on_device.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    return task->score(totals);
  };
  const auto evaluate = [&](const tasks::Dataset& split, auto& order) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(me.device);
    each_batch(split, order, options.batch_size, false, [&](const tasks::Batch& batch) {
      const auto on_device = batch.to(me.device);
      totals += task->loss(model->forward(on_device.input), on_device.target).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    const auto trained = train();
    const auto valid = evaluate(valid_set, valid_order);
    progress.report(trained, valid);
    ++epoch;
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_set, test_order);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
