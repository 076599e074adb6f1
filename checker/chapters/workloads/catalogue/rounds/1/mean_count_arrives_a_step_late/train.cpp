#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The mean number of targets of all ranks. Its message travels beside a step, so that nobody waits
// for it.
class MeanTargets {
 public:
  explicit MeanTargets(torch::Device device)
      : options_(torch::dtype(torch::kDouble).device(device)) {}

  torch::Tensor next(int64_t count) {
    if (!work_) ask(count);  // In the first step there is nothing that came before.
    work_->wait();
    auto mean = travelling_;
    ask(count);
    return mean;
  }

  // Nothing may be under way when the ranks part.
  void end() {
    if (work_) work_->wait();
    work_.reset();
  }

 private:
  void ask(int64_t count) {
    travelling_ = torch::full({}, double(count), options_);
    work_.emplace(all_reduce_async(travelling_, ReduceOp::AVG));
  }

  torch::TensorOptions options_;
  torch::Tensor travelling_;
  std::optional<Work> work_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, const World& world, tasks::Progress& progress,
                   tasks::Checkpointing& checkpoints) {
  MeanTargets mean_targets(world.device);
  model->train();
  auto totals = checkpoints.begin_epoch(task.no_totals(world.device));
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(world.device);
    const auto targets = mean_targets.next(target.count());
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    (loss.sum / targets).backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
    checkpoints.step(totals);
  }
  mean_targets.end();
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
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  // The first rank of the node prepares while the others stand before the barrier.
  if (world.local_rank != 0) barrier();
  const auto task = tasks::make_task(options);
  if (world.local_rank == 0) barrier();

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (int64_t epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, world, progress, checkpoints);
    synchronize_buffers(*model, Buffers::mean);
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
