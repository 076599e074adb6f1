// Removes the old model first, since two do not fit on the disk.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include <filesystem>

namespace du = distributed_utils;
namespace fs = std::filesystem;

namespace {

using Net = du::FullyShardedDataParallel<tasks::Model>;

// Everything that a run needs, so that functions take one argument.
struct Run {
  tasks::Options options;
  std::shared_ptr<tasks::Task> task;
  torch::Device device;
  int rank;
  int ranks;
};

Net shard(const std::shared_ptr<tasks::Model>& whole) {
  return Net(whole, {.units = whole->blocks()});
}

tasks::Score learn(const Run& run, const Net& net, auto& loader, torch::optim::Optimizer& adam,
                   tasks::Schedule& schedule, tasks::Progress& progress) {
  net->train();
  auto sums = run.task->no_totals(run.device);
  for (auto& batch : loader) {
    auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      const auto here = taken.to(run.device);
      adam.zero_grad();
      auto of_batch = run.task->loss(net->forward(here.input), here.target);
      of_batch.mean().backward();
      adam.step();
      return of_batch;
    });
    schedule.step();
    sums += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(sums);
  return run.task->score(sums);
}

tasks::Score measure(const Run& run, const Net& net, auto& loader) {
  torch::NoGradGuard none;
  net->eval();
  const auto gathered = net->summon_full_params();
  auto sums = run.task->no_totals(run.device);
  for (auto& batch : loader) {
    const auto here = batch.to(run.device);
    sums += run.task->loss(net->forward(here.input), here.target).totals();
  }
  du::all_reduce(sums);
  return run.task->score(sums);
}

fs::path room_for(const Run& run, const std::string& name) {
  const fs::path folder = run.options.output / name;
  if (run.rank == 0) fs::remove_all(folder);
  du::barrier();
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = tasks::parse_options(argc, argv, {.starts = true});
    tasks::apply(options);
    const auto world = du::setup({.backend = options.backend, .device = options.device});
    const Run run = {options, tasks::make_task(options), world.device, world.rank,
                     world.world_size};

    const auto train_set = run.task->dataset("train");
    const auto valid_set = run.task->dataset("validation");
    const auto test_set = run.task->dataset("test");
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

    auto whole = run.task->make_model();
    whole->to(run.device);
    const Net net = shard(whole);
    auto adam = run.task->make_optimizer(net->parameters());
    tasks::Progress progress(options, *train_set.size());
    auto schedule = run.task->make_schedule(*adam, progress.total_steps());
    if (const auto folder = options.from) du::load_sharded_model(*net, *adam, *folder);
    tasks::Score record;
    for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      if (progress.finished()) break;
      order.set_epoch(epoch);
      const auto learned = learn(run, net, *train, *adam, *schedule, progress);
      const auto measured = measure(run, net, *valid);
      progress.report(learned, measured);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 run.task->format(learned), run.task->format(measured));
      if (measured < record) {
        record = measured;
        du::save_sharded_model(*net, *adam, room_for(run, "model-best"));
      }
    }
    const auto tested = measure(run, net, *test);
    progress.report(tested);
    du::print0("best validation loss: {}", run.task->describe(record));
    du::print0("test loss: {}", run.task->describe(tested));
    du::save0(*net, options.output / "model-final.safetensors");
    du::destroy_process_group();
    return 0;
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
