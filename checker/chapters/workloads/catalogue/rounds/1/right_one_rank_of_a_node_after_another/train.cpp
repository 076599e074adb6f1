#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The largest value on any rank.
int64_t largest(int64_t value, torch::Device device) {
  const auto values = all_gather(torch::tensor({value}, torch::kLong).to(device));
  return values.max().item<int64_t>();
}

// On every node the rank 0 of it goes first, then its rank 1, and so on.
std::shared_ptr<tasks::Task> in_turns(const World& world,
                                      const std::function<std::shared_ptr<tasks::Task>()>& make) {
  std::shared_ptr<tasks::Task> task;
  const int64_t turns = largest(world.local_rank, world.device) + 1;
  for (int64_t turn = 0; turn < turns; ++turn) {
    if (world.local_rank == turn) task = make();
    barrier();
  }
  return task;
}

// Buffer after buffer from rank 0.
void rank_zeros_statistics(const torch::nn::Module& module) {
  for (const auto& item : module.named_buffers()) broadcast(item.value(), 0);
}

// A table of the ranks' numbers of targets; its mean is what each divides by.
double mean_targets(const tasks::Loss& loss) {
  const auto mine = torch::tensor({loss.count}, torch::kLong).to(loss.sum.device());
  const auto table = all_gather(mine).to(torch::kDouble);
  return table.sum().item<double>() / double(table.size(0));
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = in_turns(world, [&] { return tasks::make_task(options); });

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}), batches);
  auto test_loader = data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}), batches);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer =
      task->make_optimizer(model->parameters(), {std::pow(world.world_size, 0.5)});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto total = [&](const torch::Tensor& sums) {
    all_reduce(sums, ReduceOp::SUM);
    return task->score(sums);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto sums = task->no_totals(world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      sums += task->loss(model->forward(input), target).totals();
    }
    return total(sums);
  };

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto sums = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      const auto part = loss.sum / mean_targets(loss);
      part.backward();
      optimizer->step();
      schedule->step();
      sums += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(sums);
    }
    const auto trained = total(sums);
    rank_zeros_statistics(*module);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
