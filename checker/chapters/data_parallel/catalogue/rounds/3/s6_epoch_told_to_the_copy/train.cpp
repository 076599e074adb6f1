#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The same shuffled order on all ranks, rank r takes every world-size-th index of it.
class Cards : public data::samplers::Sampler<> {
 public:
  Cards(size_t size, const World& world, std::optional<uint64_t> seed = {})
      : size_(size), world_(world), seed_(seed) {}

  void set_epoch(int64_t epoch) { epoch_ = epoch; }

  void reset(std::optional<size_t> size = std::nullopt) override {
    size_ = size.value_or(size_);
    order_.resize(size_);
    std::iota(order_.begin(), order_.end(), 0);
    if (seed_) {
      std::shuffle(order_.begin(), order_.end(), std::mt19937_64(*seed_ + epoch_));
      order_.resize(size_ / world_.world_size * world_.world_size);
    }
    next_ = world_.rank;
  }

  std::optional<std::vector<size_t>> next(size_t count) override {
    std::vector<size_t> some;
    for (; next_ < order_.size() && some.size() < count; next_ += world_.world_size)
      some.push_back(order_[next_]);
    if (some.empty()) return std::nullopt;
    return some;
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t size_;
  World world_;
  std::optional<uint64_t> seed_;
  int64_t epoch_ = 0;
  std::vector<size_t> order_;
  size_t next_ = 0;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  Cards cards(*train_set.size(), world, options.seed);
  const auto train_loader = data::make_data_loader(
      train_set, cards, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader = data::make_data_loader(valid_set, Cards(*valid_set.size(), world),
                                                   data::DataLoaderOptions(options.batch_size));
  const auto test_loader = data::make_data_loader(test_set, Cards(*test_set.size(), world),
                                                  data::DataLoaderOptions(options.batch_size));
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    cards.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
