// Saves the best model in both forms: other programs like one file.
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

tasks::Score train_one_epoch(const Run& run, const Net& fsdp, auto& loader,
                             torch::optim::Optimizer& opt, tasks::Schedule& schedule,
                             tasks::Progress& progress) {
  fsdp->train();
  auto sums = run.task->no_totals(run.device);
  for (auto& batch : loader) {
    auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      const auto here = taken.to(run.device);
      opt.zero_grad();
      auto of_batch = run.task->loss(fsdp->forward(here.input), here.target);
      of_batch.mean().backward();
      opt.step();
      return of_batch;
    });
    schedule.step();
    sums += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(sums);
  return run.task->score(sums);
}

tasks::Score validate(const Run& run, const Net& fsdp, auto& loader) {
  torch::NoGradGuard none;
  fsdp->eval();
  const auto gathered = fsdp->summon_full_params();
  auto sums = run.task->no_totals(run.device);
  for (auto& batch : loader) {
    const auto here = batch.to(run.device);
    sums += run.task->loss(fsdp->forward(here.input), here.target).totals();
  }
  du::all_reduce(sums);
  return run.task->score(sums);
}

void save_both(const Run& run, const Net& fsdp, const torch::optim::Optimizer& opt) {
  const auto stem = run.options.output / "model-best";
  du::save_sharded_model(*fsdp, opt, stem);
  du::save0(*fsdp, stem.string() + ".safetensors");
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
    const Net fsdp = shard(whole);
    auto opt = run.task->make_optimizer(fsdp->parameters());
    tasks::Progress progress(options, *train_set.size());
    auto schedule = run.task->make_schedule(*opt, progress.total_steps());
    if (options.from) du::load_sharded_model(*fsdp, *opt, *options.from);
    tasks::Score record;
    for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      if (progress.finished()) break;
      order.set_epoch(epoch);
      const auto learned = train_one_epoch(run, fsdp, *train, *opt, *schedule, progress);
      const auto measured = validate(run, fsdp, *valid);
      progress.report(learned, measured);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 run.task->format(learned), run.task->format(measured));
      if (measured < record) {
        record = measured;
        save_both(run, fsdp, *opt);
      }
    }
    const auto tested = validate(run, fsdp, *test);
    progress.report(tested);
    du::print0("best validation loss: {}", run.task->describe(record));
    du::print0("test loss: {}", run.task->describe(tested));
    du::save0(*fsdp, options.output / "model-final.safetensors");
    du::destroy_process_group();
    return 0;
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
