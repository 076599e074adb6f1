// Step 06: One rank speaks, one rank writes.

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Orders of n samples, as policies.
struct InOrder {
  std::vector<size_t> operator()(size_t samples, uint64_t /*epoch*/) const {
    std::vector<size_t> order(samples);
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }
};
struct Shuffled {
  uint64_t seed;
  std::vector<size_t> operator()(size_t samples, uint64_t epoch) const {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed + epoch);
    const auto drawn = torch::randperm(static_cast<int64_t>(samples), generator, torch::kInt64);
    const auto* first = drawn.const_data_ptr<int64_t>();
    return {first, first + samples};
  }
};

// Deals an order out like cards. All copies share the epoch.
template <typename Order>
class Dealer : public data::samplers::Sampler<> {
 public:
  Dealer(size_t samples, Order order, const World& world, bool equal_shares)
      : samples_(samples),
        order_(order),
        rank_(static_cast<size_t>(world.rank)),
        ranks_(static_cast<size_t>(world.world_size)),
        equal_shares_(equal_shares) {}

  void set_epoch(int64_t epoch) { *epoch_ = static_cast<uint64_t>(epoch); }

  void reset(std::optional<size_t> = std::nullopt) override {
    const auto order = order_(samples_, *epoch_);
    const auto dealt = equal_shares_ ? samples_ / ranks_ * ranks_ : samples_;
    hand_.clear();
    for (auto place = rank_; place < dealt; place += ranks_) hand_.push_back(order[place]);
    played_ = 0;
  }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    const auto count = std::min(batch_size, hand_.size() - played_);
    if (count == 0) return std::nullopt;
    const auto first = hand_.begin() + static_cast<std::ptrdiff_t>(played_);
    played_ += count;
    return std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(count));
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t samples_;
  Order order_;
  size_t rank_, ranks_;
  bool equal_shares_;
  std::shared_ptr<uint64_t> epoch_ = std::make_shared<uint64_t>(0);
  std::vector<size_t> hand_;
  size_t played_ = 0;
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
  all_reduce(totals, ReduceOp::SUM);
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
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
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

  Dealer train_sampler(*train_set.size(), Shuffled{options.seed}, world, true);
  const Dealer valid_sampler(*valid_set.size(), InOrder{}, world, false);
  const Dealer test_sampler(*test_set.size(), InOrder{}, world, false);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
