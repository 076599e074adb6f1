// --from names the model that is tested in the end.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include <filesystem>

namespace du = distributed_utils;
namespace fs = std::filesystem;

namespace {

using Net = du::FullyShardedDataParallel<tasks::Model>;

// Everything that a context needs, so that functions take one argument.
struct Context {
  tasks::Options options;
  std::shared_ptr<tasks::Task> task;
  torch::Device device;
  int rank;
  int ranks;
};

Net shard(const std::shared_ptr<tasks::Model>& whole) {
  return Net(whole, {.units = whole->blocks()});
}

tasks::Score learn(const Context& context, const Net& sharded, auto& loader,
                   torch::optim::Optimizer& adamw, tasks::Schedule& schedule,
                   tasks::Progress& progress) {
  sharded->train();
  auto sums = context.task->no_totals(context.device);
  for (auto& batch : loader) {
    auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      const auto moved = taken.to(context.device);
      adamw.zero_grad();
      auto of_batch = context.task->loss(sharded->forward(moved.input), moved.target);
      of_batch.mean().backward();
      adamw.step();
      return of_batch;
    });
    schedule.step();
    sums += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(sums);
  return context.task->score(sums);
}

tasks::Score measure(const Context& context, const Net& sharded, auto& loader) {
  torch::NoGradGuard none;
  sharded->eval();
  const auto gathered = sharded->summon_full_params();
  auto sums = context.task->no_totals(context.device);
  for (auto& batch : loader) {
    const auto moved = batch.to(context.device);
    sums += context.task->loss(sharded->forward(moved.input), moved.target).totals();
  }
  du::all_reduce(sums);
  return context.task->score(sums);
}

void restore(const fs::path& folder, const Net& sharded, torch::optim::Optimizer& adamw) {
  du::load_sharded_model(*sharded, adamw, folder);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = tasks::parse_options(argc, argv, {.starts = true});
    tasks::apply(options);
    const auto world = du::setup({.backend = options.backend, .device = options.device});
    const Context context = {options, tasks::make_task(options), world.device, world.rank,
                             world.world_size};

    const auto train_set = context.task->dataset("train");
    const auto valid_set = context.task->dataset("validation");
    const auto test_set = context.task->dataset("test");
    du::DistributedSampler order(*train_set.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
    auto train = torch::data::make_data_loader(
        train_set, order, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
    auto valid = torch::data::make_data_loader(
        valid_set, du::DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options.batch_size));
    auto test = torch::data::make_data_loader(
        test_set, du::DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options.batch_size));

    auto whole = context.task->make_model();
    whole->to(context.device);
    const Net sharded = shard(whole);
    auto adamw = context.task->make_optimizer(sharded->parameters());
    tasks::Progress progress(options, *train_set.size());
    auto schedule = context.task->make_schedule(*adamw, progress.total_steps());
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      if (progress.finished()) break;
      order.set_epoch(epoch);
      const auto learned = learn(context, sharded, *train, *adamw, *schedule, progress);
      const auto measured = measure(context, sharded, *valid);
      progress.report(learned, measured);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 context.task->format(learned), context.task->format(measured));
      if (measured < best) {
        best = measured;
        du::save_sharded_model(*sharded, *adamw, options.output / "model-best");
      }
    }
    if (options.from) restore(*options.from, sharded, *adamw);
    const auto tested = measure(context, sharded, *test);
    progress.report(tested);
    du::print0("best validation loss: {}", context.task->describe(best));
    du::print0("test loss: {}", context.task->describe(tested));
    du::save0(*sharded, options.output / "model-final.safetensors");
    du::destroy_process_group();
    return 0;
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
