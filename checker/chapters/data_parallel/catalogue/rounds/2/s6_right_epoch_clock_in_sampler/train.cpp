// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The number of the epoch, which the loop and the sampler (and the loader's copy of it) look at.
using EpochClock = std::shared_ptr<int64_t>;

// A DistributedSampler that reads the epoch from the clock whenever a pass begins.
class ClockedSampler : public data::samplers::Sampler<> {
 public:
  ClockedSampler(size_t samples, const DistributedSamplerOptions& options, EpochClock clock)
      : inner_(samples, options), clock_(std::move(clock)) {}

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    inner_.set_epoch(static_cast<uint64_t>(*clock_));
    inner_.reset(new_size);
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    return inner_.next(batch_size);
  }
  void save(torch::serialize::OutputArchive& archive) const override { inner_.save(archive); }
  void load(torch::serialize::InputArchive& archive) override { inner_.load(archive); }

 private:
  DistributedSampler inner_;
  EpochClock clock_;
};

// Evaluation mode without gradients, and back to training mode at the end of the scope.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& module) : module_(module) { module_.eval(); }
  ~Evaluating() { module_.train(); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  torch::NoGradGuard no_grad_;
  torch::nn::Module& module_;
};

class LeavesAtTheEnd {
 public:
  LeavesAtTheEnd() = default;
  ~LeavesAtTheEnd() { destroy_process_group(); }
  LeavesAtTheEnd(const LeavesAtTheEnd&) = delete;
  LeavesAtTheEnd& operator=(const LeavesAtTheEnd&) = delete;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
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
  const Evaluating evaluating(*model);
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
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  const LeavesAtTheEnd leaves_at_the_end;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto epoch = std::make_shared<int64_t>(0);
  const ClockedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}, epoch);
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  model->train();
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (; *epoch < options.epochs && !progress.finished(); ++*epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", *epoch + 1, options.epochs,
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
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
