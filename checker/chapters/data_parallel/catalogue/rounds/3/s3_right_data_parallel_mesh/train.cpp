// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <stdexcept>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The ranks as a Cartesian grid, as MPI_Cart_create makes one. There is only one dimension now: the
// data are dealt out along "dp", and so all ranks of the world are in its one group.
class Grid {
 public:
  explicit Grid(const World& world) : device_(world.device), mesh_(MeshSizes{}) {}

  DistributedSampler shuffled(const tasks::Dataset& set, uint64_t seed) const {
    DistributedSampler sampler(
        *set.size(), {.shuffle = true, .seed = seed, .drop_last = true, .group = dp()});
    expect(sum(sampler.size()) == *set.size() / mesh_.size("dp") * mesh_.size("dp"));
    return sampler;
  }

  DistributedSampler in_order(const tasks::Dataset& set) const {
    DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false, .group = dp()});
    expect(sum(sampler.size()) == *set.size());
    return sampler;
  }

 private:
  Group dp() const { return mesh_.get_group("dp"); }

  // The sum over all ranks of the grid.
  size_t sum(size_t mine) const {
    const auto total = torch::tensor({static_cast<int64_t>(mine)}).to(device_);
    all_reduce(total, ReduceOp::SUM, dp());
    return static_cast<size_t>(total.item<int64_t>());
  }

  static void expect(bool condition) {
    if (!condition) throw std::logic_error("the shares do not add up to the whole");
  }

  torch::Device device_;
  DeviceMesh mesh_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

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
  const World world = setup({.backend = options.backend, .device = options.device});
  const Grid grid(world);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader =
      data::make_data_loader(train_set, grid.shuffled(train_set, options.seed), train_batches);
  auto valid_loader = data::make_data_loader(valid_set, grid.in_order(valid_set), batches);
  auto test_loader = data::make_data_loader(test_set, grid.in_order(test_set), batches);

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, world.device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
