#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Deals one order of all ranks in strides. Copies share the epoch, as the loader holds a copy.
class Dealer : public data::samplers::Sampler<> {
 public:
  Dealer(size_t size, bool shuffles, uint64_t seed)
      : size_(size), shuffles_(shuffles), seed_(seed), epoch_(std::make_shared<int64_t>(0)) {}

  void epoch(int64_t number) { *epoch_ = number; }

  void reset(std::optional<size_t> size = std::nullopt) override {
    if (size) size_ = *size;
    std::vector<size_t> order(size_);
    std::iota(order.begin(), order.end(), 0);
    if (shuffles_) {
      std::mt19937 generator(static_cast<uint32_t>(seed_ + 7919 * *epoch_));
      std::shuffle(order.begin(), order.end(), generator);
      order.resize(size_ - size_ % get_world_size());
    }
    mine_.clear();
    for (size_t i = get_rank(); i < order.size(); i += get_world_size()) mine_.push_back(order[i]);
    at_ = 0;
  }

  std::optional<std::vector<size_t>> next(size_t count) override {
    if (at_ == mine_.size()) return std::nullopt;
    const auto end = std::min(at_ + count, mine_.size());
    std::vector<size_t> some(mine_.begin() + at_, mine_.begin() + end);
    at_ = end;
    return some;
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t size_;
  bool shuffles_;
  uint64_t seed_;
  std::shared_ptr<int64_t> epoch_;
  std::vector<size_t> mine_;
  size_t at_ = 0;
};

// The ranks leave when this goes, which is after all that was declared behind it.
struct Membership {
  World world;
  explicit Membership(const tasks::Options& options)
      : world(setup({.backend = options.backend, .device = options.device})) {}
  ~Membership() { destroy_process_group(); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
};

void work(const tasks::Options& options) {
  const Membership member(options);
  const auto device = member.world.device;
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  Dealer dealer(*train_set.size(), true, options.seed);
  const data::DataLoaderOptions some(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, dealer, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, Dealer(*valid_set.size(), false, 0), some);
  auto test_loader = data::make_data_loader(test_set, Dealer(*test_set.size(), false, 0), some);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // One pass over a loader; `visit` takes a batch on its device and says whether to go on.
  const auto pass = [&](auto& loader, bool training, auto visit) {
    const torch::AutoGradMode gradients(training);
    model->train(training);
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto here = batch.to(device);
      if (!visit(here, totals)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto learn = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    return progress.step(loss);
  };
  const auto look = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    totals += task->loss(model->forward(batch.input), batch.target).totals();
    return true;
  };

  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    dealer.epoch(epoch);
    const auto trained = pass(*train_loader, true, learn);
    const auto valid = pass(*valid_loader, false, look);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", ++epoch, options.epochs,
           task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  }
  const auto test = pass(*test_loader, false, look);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  work(options);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
