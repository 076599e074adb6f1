// Step 03: Each rank gets its share of the data.
// One program from top to bottom. The samplers say which samples come next; the rest is loops.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstddef>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using distributed_utils::DistributedSampler;

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world =
      distributed_utils::setup({.backend = options.backend, .device = options.device});

  // ---- data: three splits, three decks of cards ----
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  const auto batch_size = static_cast<std::size_t>(options.batch_size);

  DistributedSampler train_deck(*train_set.size(),
                                {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_deck(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_deck(*test_set.size(), {.shuffle = false, .pad = false});
  const std::size_t steps = train_deck.size() / batch_size;  // only full batches

  // ---- model ----
  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // ---- epochs ----
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    torch::Tensor train_totals = task->no_totals(world.device);
    train_deck.reset();
    bool go_on = true;
    for (std::size_t step = 0; step < steps && go_on; ++step) {
      const auto hand = train_deck.next(batch_size);
      const auto batch = train_set.get_batch(*hand).to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_totals += loss.totals();
      go_on = progress.step(loss);
    }
    const tasks::Score trained = task->score(train_totals);

    model->eval();
    torch::Tensor valid_totals = task->no_totals(world.device);
    valid_deck.reset();
    for (auto hand = valid_deck.next(batch_size); hand; hand = valid_deck.next(batch_size)) {
      const torch::NoGradGuard no_grad;
      const auto batch = valid_set.get_batch(*hand).to(world.device);
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
  torch::Tensor test_totals = task->no_totals(world.device);
  test_deck.reset();
  for (auto hand = test_deck.next(batch_size); hand; hand = test_deck.next(batch_size)) {
    const torch::NoGradGuard no_grad;
    const auto batch = test_set.get_batch(*hand).to(world.device);
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
