// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Where this rank's part of n items begins, and how many they are: the first n % W ranks take one
// more. The offset comes from a scan over the counts of all ranks, as in our particle code.
struct Partition {
  int64_t total;
  int64_t offset;
  int64_t count;

  Partition(int64_t n, const World& world) : total(n), offset(0) {
    count = n / world.world_size + (world.rank < n % world.world_size ? 1 : 0);
    const auto counts = all_gather(torch::tensor({count}).to(world.device)).cpu().flatten();
    const auto scanned = counts.cumsum(0);
    offset = scanned[world.rank].item<int64_t>();
  }

  // Indices are periodic, like cells of a periodic box.
  size_t index(int64_t i) const { return static_cast<size_t>((offset + i) % total); }
};

// Goes through a partition in order, without shuffling: each sample counts once.
class PartitionSampler : public data::samplers::Sampler<> {
 public:
  explicit PartitionSampler(const Partition& partition) : partition_(partition) {}

  void reset(std::optional<size_t> = std::nullopt) override { done_ = 0; }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (done_ == partition_.count) return std::nullopt;
    const auto end = std::min(partition_.count, done_ + static_cast<int64_t>(batch_size));
    std::vector<size_t> batch;
    while (done_ < end) batch.push_back(partition_.index(done_++));
    return batch;
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  Partition partition_;
  int64_t done_ = 0;
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
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const PartitionSampler valid_sampler(Partition(*valid_set.size(), world));
  const PartitionSampler test_sampler(Partition(*test_set.size(), world));

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

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
