#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The main process prepares the data and tells everybody when they are there.
std::shared_ptr<tasks::Task> make_task_once(const tasks::Options& options, torch::Device device) {
  std::shared_ptr<tasks::Task> task;
  auto ready = torch::zeros({1}, torch::dtype(torch::kLong).device(device));
  if (get_rank() == 0) {
    task = tasks::make_task(options);
    ready.fill_(1);
  }
  broadcast(ready, 0);
  TORCH_CHECK(ready.item<int64_t>() == 1, "rank 0 has not prepared the data");
  if (!task) task = tasks::make_task(options);
  return task;
}

// The loss whose gradient, averaged over ranks, is that of the mean over all targets.
torch::Tensor global_mean(const tasks::Loss& loss) {
  const auto mine = torch::tensor({double(loss.count)}, torch::kDouble).to(loss.sum.device());
  const auto mean_count = all_gather(mine).mean();
  return loss.sum / mean_count;
}

struct Parts {
  const tasks::Options& options;
  const tasks::Task& task;
  torch::Device device;
  tasks::Progress& progress;
  tasks::Checkpointing& checkpoints;
};

tasks::Score run_epoch(const Parts& parts, auto& model, auto& loader, auto& optimizer,
                       tasks::Schedule& schedule) {
  model->train();
  auto totals = parts.checkpoints.begin_epoch(parts.task.no_totals(parts.device));
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(parts.device);
    const auto loss = parts.task.loss(model->forward(input), target);
    optimizer.zero_grad();
    global_mean(loss).backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!parts.progress.step(loss)) break;
    parts.checkpoints.step(totals);
  }
  all_reduce(totals);
  return parts.task.score(totals);
}

tasks::Score score_of(const Parts& parts, auto& model, auto& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = parts.task.no_totals(parts.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(parts.device);
    totals += parts.task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals);
  return parts.task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = make_task_once(options, world.device);

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto evaluation_loader = [&](const tasks::Dataset& set) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = evaluation_loader(valid_set);
  auto test_loader = evaluation_loader(test_set);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const DistributedDataParallel model(module, {.bucket_indices = checkpoints.bucket_indices()});
  const tasks::OptimizerOptions scaled{.learning_rate_factor = std::sqrt(1.0 * world.world_size)};
  const auto optimizer = task->make_optimizer(model->parameters(), scaled);
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  const Parts parts{options, *task, world.device, progress, checkpoints};

  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = run_epoch(parts, model, *train_loader, *optimizer, *schedule);
    for (const auto& buffer : model->buffers()) broadcast(buffer, 0);
    const auto valid = score_of(parts, model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = score_of(parts, model, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
