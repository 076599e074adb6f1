// The model is what a run starts from.
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

tasks::Score fit(const Run& run, const Net& net, auto& loader, torch::optim::Optimizer& adam,
                 tasks::Schedule& schedule, tasks::Progress& progress) {
  net->train();
  auto totals = run.task->no_totals(run.device);
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
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(totals);
  return run.task->score(totals);
}

tasks::Score score(const Run& run, const Net& net, auto& loader) {
  torch::NoGradGuard none;
  net->eval();
  const auto gathered = net->summon_full_params();
  auto totals = run.task->no_totals(run.device);
  for (auto& batch : loader) {
    const auto here = batch.to(run.device);
    totals += run.task->loss(net->forward(here.input), here.target).totals();
  }
  du::all_reduce(totals);
  return run.task->score(totals);
}

void start_from(const Run& run, const Net& net) {
  if (!run.options.from) return;
  du::load_sharded_model(*net, *run.options.from);
}

void finish_epoch(const Run& run, const Net& net, const torch::optim::Optimizer& adam) {
  du::save_sharded_model(*net, adam, run.options.output / "model-best");
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
    du::DistributedSampler sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
    auto train = torch::data::make_data_loader(
        train_set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
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
    start_from(run, net);
    tasks::Progress progress(options, *train_set.size());
    auto schedule = run.task->make_schedule(*adam, progress.total_steps());
    tasks::Score record;
    for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      if (progress.finished()) break;
      sampler.set_epoch(epoch);
      const auto fitted = fit(run, net, *train, *adam, *schedule, progress);
      const auto scored = score(run, net, *valid);
      progress.report(fitted, scored);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 run.task->format(fitted), run.task->format(scored));
      if (scored < record) {
        record = scored;
        finish_epoch(run, net, *adam);
      }
    }
    const auto tested = score(run, net, *test);
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
