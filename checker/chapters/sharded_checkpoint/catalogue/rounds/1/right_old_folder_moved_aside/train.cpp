// The candidate is written first. Then the folders change names.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include <filesystem>

namespace du = distributed_utils;
namespace fs = std::filesystem;

namespace {

using Net = du::FullyShardedDataParallel<tasks::Model>;

// Everything that a setting needs, so that functions take one argument.
struct Setting {
  tasks::Options options;
  std::shared_ptr<tasks::Task> task;
  torch::Device device;
  int rank;
  int ranks;
};

Net shard(const std::shared_ptr<tasks::Model>& whole) {
  return Net(whole, {.units = whole->blocks()});
}

tasks::Score teach(const Setting& setting, const Net& model, auto& loader,
                   torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                   tasks::Progress& progress) {
  model->train();
  auto sums = setting.task->no_totals(setting.device);
  for (auto& batch : loader) {
    auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      const auto here = taken.to(setting.device);
      optimizer.zero_grad();
      auto of_batch = setting.task->loss(model->forward(here.input), here.target);
      of_batch.mean().backward();
      optimizer.step();
      return of_batch;
    });
    schedule.step();
    sums += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(sums);
  return setting.task->score(sums);
}

tasks::Score check(const Setting& setting, const Net& model, auto& loader) {
  torch::NoGradGuard none;
  model->eval();
  const auto gathered = model->summon_full_params();
  auto sums = setting.task->no_totals(setting.device);
  for (auto& batch : loader) {
    const auto here = batch.to(setting.device);
    sums += setting.task->loss(model->forward(here.input), here.target).totals();
  }
  du::all_reduce(sums);
  return setting.task->score(sums);
}

// All ranks write; when all are done, rank 0 gives the folder its name. The model before stays, as
// model-before.
void keep(const Setting& setting, const Net& model, const torch::optim::Optimizer& optimizer) {
  const fs::path candidate = setting.options.output / "model-candidate";
  const fs::path best = setting.options.output / "model-best";
  const fs::path before = setting.options.output / "model-before";
  du::save_sharded_model(*model, optimizer, candidate);
  if (setting.rank == 0) {
    fs::remove_all(before);
    if (fs::exists(best)) fs::rename(best, before);
    fs::rename(candidate, best);
  }
  du::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = tasks::parse_options(argc, argv, {.starts = true});
    tasks::apply(options);
    const auto world = du::setup({.backend = options.backend, .device = options.device});
    const Setting setting = {options, tasks::make_task(options), world.device, world.rank,
                             world.world_size};

    const auto train_set = setting.task->dataset("train");
    const auto valid_set = setting.task->dataset("validation");
    const auto test_set = setting.task->dataset("test");
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

    auto whole = setting.task->make_model();
    whole->to(setting.device);
    const Net model = shard(whole);
    auto optimizer = setting.task->make_optimizer(model->parameters());
    if (options.from.has_value()) {
      du::load_sharded_model(*model, *optimizer, options.from.value());
    }
    tasks::Progress progress(options, *train_set.size());
    auto schedule = setting.task->make_schedule(*optimizer, progress.total_steps());
    tasks::Score lowest;
    for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      if (progress.finished()) break;
      order.set_epoch(epoch);
      const auto taught = teach(setting, model, *train, *optimizer, *schedule, progress);
      const auto checked = check(setting, model, *valid);
      progress.report(taught, checked);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 setting.task->format(taught), setting.task->format(checked));
      if (checked < lowest) {
        lowest = checked;
        keep(setting, model, *optimizer);
      }
    }
    const auto tested = check(setting, model, *test);
    progress.report(tested);
    du::print0("best validation loss: {}", setting.task->describe(lowest));
    du::print0("test loss: {}", setting.task->describe(tested));
    du::save0(*model, options.output / "model-final.safetensors");
    du::destroy_process_group();
    return 0;
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
