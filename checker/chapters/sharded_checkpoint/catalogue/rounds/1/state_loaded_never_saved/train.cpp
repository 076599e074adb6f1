// Saves the model in parts, and loads model and optimizer.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

namespace dist = distributed_utils;

int main(int argc, char** argv) try {
  const tasks::Options opts = tasks::parse_options(argc, argv, {.starts = true});
  tasks::apply(opts);
  const auto me = dist::setup({.backend = opts.backend, .device = opts.device});
  const auto task = tasks::make_task(opts);

  // ---- data ----
  const auto loader_of = [&](const tasks::Dataset& set, const dist::DistributedSampler& sampler,
                             bool full) {
    return torch::data::make_data_loader(
        set, sampler, torch::data::DataLoaderOptions(opts.batch_size).drop_last(full));
  };
  const auto d_train = task->dataset("train");
  const auto d_valid = task->dataset("validation");
  const auto d_test = task->dataset("test");
  dist::DistributedSampler s_train(*d_train.size(),
                                   {.shuffle = true, .seed = opts.seed, .drop_last = true});
  const auto l_train = loader_of(d_train, s_train, true);
  const auto l_valid = loader_of(
      d_valid, dist::DistributedSampler(*d_valid.size(), {.shuffle = false, .pad = false}), false);
  const auto l_test = loader_of(
      d_test, dist::DistributedSampler(*d_test.size(), {.shuffle = false, .pad = false}), false);

  // ---- model ----
  const auto bare = task->make_model();
  bare->to(me.device);
  const auto fsdp = dist::FullyShardedDataParallel(bare, {.units = bare->blocks()});
  const auto optim = task->make_optimizer(fsdp->parameters());
  const auto continue_from = [&](const std::filesystem::path& folder) {
    dist::load_sharded_model(*fsdp, *optim, folder);
  };
  if (opts.from) continue_from(*opts.from);
  tasks::Progress bar(opts, *d_train.size());
  const auto rates = task->make_schedule(*optim, bar.total_steps());

  const auto validate = [&](auto& loader) {
    const torch::NoGradGuard quiet;
    fsdp->eval();
    const auto params = fsdp->summon_full_params();
    auto totals = task->no_totals(me.device);
    for (auto& batch : loader) {
      const auto [in, out] = batch.to(me.device);
      totals += task->loss(fsdp->forward(in), out).totals();
    }
    dist::all_reduce(totals, dist::ReduceOp::SUM);
    return task->score(totals);
  };

  const auto save_best = [&fsdp, folder = opts.output / "model-best"] {
    dist::save_sharded_model(*fsdp, folder);
  };
  // ---- training ----
  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < opts.epochs && !bar.finished()) {
    s_train.set_epoch(epoch);
    fsdp->train();
    auto totals = task->no_totals(me.device);
    for (auto& batch : *l_train) {
      const auto loss = bar.take_step(batch, [&](const tasks::Batch& on_host) {
        const auto [in, out] = on_host.to(me.device);
        optim->zero_grad();
        const auto value = task->loss(fsdp->forward(in), out);
        value.mean().backward();
        optim->step();
        return value;
      });
      rates->step();
      totals += loss.totals();
      if (!bar.step(loss)) break;
    }
    dist::all_reduce(totals, dist::ReduceOp::SUM);
    const auto seen = task->score(totals);
    const auto unseen = validate(*l_valid);
    bar.report(seen, unseen);
    ++epoch;
    dist::print0("epoch {}/{}: training loss {}, validation loss {}", epoch, opts.epochs,
                 task->format(seen), task->format(unseen));
    if (unseen < best) {
      save_best();
      best = unseen;
    }
  }
  // ---- the end ----
  const auto result = validate(*l_test);
  bar.report(result);
  dist::print0("best validation loss: {}", task->describe(best));
  dist::print0("test loss: {}", task->describe(result));
  dist::save0(*fsdp, opts.output / "model-final.safetensors");
  dist::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
