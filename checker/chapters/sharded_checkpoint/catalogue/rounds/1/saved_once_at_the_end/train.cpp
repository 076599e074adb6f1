// Saving takes time, so it happens once.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

namespace wd = distributed_utils;

int main(int argc, char** argv) try {
  const tasks::Options opts = tasks::parse_options(argc, argv, {.starts = true});
  tasks::apply(opts);
  const auto me = wd::setup({.backend = opts.backend, .device = opts.device});
  const auto task = tasks::make_task(opts);

  // ---- data ----
  const auto loader_of = [&](const tasks::Dataset& set, const wd::DistributedSampler& sampler,
                             bool full) {
    return torch::data::make_data_loader(
        set, sampler, torch::data::DataLoaderOptions(opts.batch_size).drop_last(full));
  };
  const auto d_train = task->dataset("train");
  const auto d_valid = task->dataset("validation");
  const auto d_test = task->dataset("test");
  wd::DistributedSampler s_train(*d_train.size(),
                                 {.shuffle = true, .seed = opts.seed, .drop_last = true});
  const auto l_train = loader_of(d_train, s_train, true);
  const auto l_valid = loader_of(
      d_valid, wd::DistributedSampler(*d_valid.size(), {.shuffle = false, .pad = false}), false);
  const auto l_test = loader_of(
      d_test, wd::DistributedSampler(*d_test.size(), {.shuffle = false, .pad = false}), false);

  // ---- model ----
  const auto bare = task->make_model();
  bare->to(me.device);
  const auto fsdp = wd::FullyShardedDataParallel(bare, {.units = bare->blocks()});
  const auto optim = task->make_optimizer(fsdp->parameters());
  if (opts.from) wd::load_sharded_model(*fsdp, *optim, *opts.from);
  tasks::Progress steps(opts, *d_train.size());
  const auto lr = task->make_schedule(*optim, steps.total_steps());

  const auto validate = [&](auto& loader) {
    const torch::NoGradGuard quiet;
    fsdp->eval();
    const auto params = fsdp->summon_full_params();
    auto totals = task->no_totals(me.device);
    for (auto& batch : loader) {
      const auto [in, out] = batch.to(me.device);
      totals += task->loss(fsdp->forward(in), out).totals();
    }
    wd::all_reduce(totals, wd::ReduceOp::SUM);
    return task->score(totals);
  };
  // ---- training ----
  tasks::Score min_loss;
  int64_t epoch = 0;
  while (epoch < opts.epochs && !steps.finished()) {
    s_train.set_epoch(epoch);
    fsdp->train();
    auto totals = task->no_totals(me.device);
    for (auto& batch : *l_train) {
      const auto loss = steps.take_step(batch, [&](const tasks::Batch& on_host) {
        const auto [in, out] = on_host.to(me.device);
        optim->zero_grad();
        const auto value = task->loss(fsdp->forward(in), out);
        value.mean().backward();
        optim->step();
        return value;
      });
      lr->step();
      totals += loss.totals();
      if (!steps.step(loss)) break;
    }
    wd::all_reduce(totals, wd::ReduceOp::SUM);
    const auto seen = task->score(totals);
    const auto unseen = validate(*l_valid);
    steps.report(seen, unseen);
    ++epoch;
    wd::print0("epoch {}/{}: training loss {}, validation loss {}", epoch, opts.epochs,
               task->format(seen), task->format(unseen));
    if (unseen < min_loss) min_loss = unseen;
  }

  wd::save_sharded_model(*fsdp, *optim, opts.output / "model-best");
  // ---- the end ----
  const auto result = validate(*l_test);
  steps.report(result);
  wd::print0("best validation loss: {}", task->describe(min_loss));
  wd::print0("test loss: {}", task->describe(result));
  wd::save0(*fsdp, opts.output / "model-final.safetensors");
  wd::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
