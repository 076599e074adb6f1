#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <numeric>

using Indices = std::vector<size_t>;

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

// The block of `order` that belongs to this rank; all blocks are of one size.
Indices block_of(const Indices& order, const World& world) {
  const size_t length = order.size() / static_cast<size_t>(world.world_size);
  const auto from = order.begin() + static_cast<std::ptrdiff_t>(length * world.rank);
  return {from, from + static_cast<std::ptrdiff_t>(length)};
}

Indices in_order(const tasks::Dataset& set) {
  Indices order(*set.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Indices shuffled(const tasks::Dataset& set, uint64_t seed) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(seed);
  const auto drawn = torch::randperm(static_cast<int64_t>(*set.size()), generator, torch::kLong);
  return {drawn.data_ptr<int64_t>(), drawn.data_ptr<int64_t>() + drawn.numel()};
}

// Calls `use` with one batch after the other until it says that it has enough.
void each_batch(tasks::Dataset set, const Indices& indices, size_t size, bool whole_ones,
                const std::function<bool(const tasks::Batch&)>& use) {
  for (size_t at = 0; at < indices.size(); at += size) {
    const size_t length = std::min(size, indices.size() - at);
    if (whole_ones && length < size) return;
    if (!use(set.get_batch(c10::ArrayRef<size_t>(indices.data() + at, length)))) return;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto batch_size = static_cast<size_t>(options.batch_size);
  const Indices train_share = block_of(shuffled(train_set, options.seed), world);
  const Indices valid_share = block_of(in_order(valid_set), world);
  const Indices test_share = block_of(in_order(test_set), world);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  const auto evaluate = [&](const tasks::Dataset& set, const Indices& share) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    each_batch(set, share, batch_size, false, [&](const tasks::Batch& batch) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    each_batch(train_set, train_share, batch_size, true, [&](const tasks::Batch& batch) {
      const auto loss = train_step(*task, model, *optimizer, batch, device);
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    const auto trained = task->score(totals);
    const auto valid = evaluate(valid_set, valid_share);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_set, test_share);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
