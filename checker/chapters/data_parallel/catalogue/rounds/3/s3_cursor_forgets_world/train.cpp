// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <span>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The training data as one long array in shuffled order, the same on all ranks. In each step the
// ranks take neighbouring tiles of it, one batch each.
class Tiles {
 public:
  Tiles(size_t size, const tasks::Options& options, const World& world)
      : tile_(options.batch_size), rank_(world.rank), ranks_(world.world_size) {
    DistributedSampler deck(size, {.shuffle = true,
                                   .seed = options.seed,
                                   .drop_last = true,
                                   .num_replicas = 1,
                                   .rank = 0});
    deck.reset();
    order_ = *deck.next(size);
  }

  // Equally many steps on all ranks: only where all of them still get a whole tile.
  size_t steps() const { return order_.size() / (tile_ * ranks_); }

  std::span<const size_t> tile(size_t step) const {
    const size_t offset = step * tile_ + rank_ * tile_;
    return std::span(order_).subspan(offset, tile_);
  }

 private:
  size_t tile_;
  size_t rank_;
  size_t ranks_;
  std::vector<size_t> order_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
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
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const Tiles tiles(*train_set.size(), options, world);
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    for (size_t step = 0; step < tiles.steps(); ++step) {
      const auto tile = tiles.tile(step);
      const auto [input, target] =
          train_set.get_batch(c10::ArrayRef<size_t>(tile.data(), tile.size())).to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
