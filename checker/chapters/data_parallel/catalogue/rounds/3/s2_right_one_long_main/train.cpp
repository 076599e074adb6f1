// Step 02: Several processes find each other.
// Everything in one main, so that it reads from top to bottom like a simulation code.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstddef>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  // ---- who am I ----
  distributed_utils::SetupOptions how;
  how.backend = options.backend;
  how.device = options.device;
  const distributed_utils::World me = distributed_utils::setup(how);

  // ---- data ----
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  const std::size_t batch_size = static_cast<std::size_t>(options.batch_size);
  const std::size_t valid_size = *valid_set.size();
  const std::size_t test_size = *test_set.size();
  torch::data::samplers::RandomSampler order(*train_set.size());

  // ---- model ----
  const auto model = task->make_model();
  model->to(me.device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // ---- epochs ----
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;

    model->train();
    auto train_totals = task->no_totals(me.device);
    order.reset();
    while (true) {
      const auto indices = order.next(batch_size);
      if (!indices || indices->size() < batch_size) break;  // only whole batches
      const auto batch = train_set.get_batch(*indices).to(me.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const tasks::Score trained = task->score(train_totals);

    model->eval();
    auto valid_totals = task->no_totals(me.device);
    for (std::size_t first = 0; first < valid_size; first += batch_size) {
      const torch::NoGradGuard no_grad;
      const std::size_t end = first + batch_size < valid_size ? first + batch_size : valid_size;
      std::vector<std::size_t> indices;
      for (std::size_t i = first; i < end; ++i) indices.push_back(i);
      const auto batch = valid_set.get_batch(indices).to(me.device);
      valid_totals += task->loss(model->forward(batch.input), batch.target).totals();
    }
    const tasks::Score valid = task->score(valid_totals);

    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));

    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  // ---- test ----
  model->eval();
  auto test_totals = task->no_totals(me.device);
  for (std::size_t first = 0; first < test_size; first += batch_size) {
    const torch::NoGradGuard no_grad;
    const std::size_t end = first + batch_size < test_size ? first + batch_size : test_size;
    std::vector<std::size_t> indices;
    for (std::size_t i = first; i < end; ++i) indices.push_back(i);
    const auto batch = test_set.get_batch(indices).to(me.device);
    test_totals += task->loss(model->forward(batch.input), batch.target).totals();
  }
  const tasks::Score test = task->score(test_totals);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
