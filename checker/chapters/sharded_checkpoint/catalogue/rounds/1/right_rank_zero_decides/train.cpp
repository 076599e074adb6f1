// Rank 0 decides, so that all ranks do the same even if their numbers ever differed.
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
  const auto net = dist::FullyShardedDataParallel(bare, {.units = bare->blocks()});
  const auto adamw = task->make_optimizer(net->parameters());
  tasks::Progress progress(opts, *d_train.size());
  const auto rates = task->make_schedule(*adamw, progress.total_steps());

  const auto validate = [&](auto& loader) {
    const torch::NoGradGuard quiet;
    net->eval();
    const auto params = net->summon_full_params();
    auto totals = task->no_totals(me.device);
    for (auto& batch : loader) {
      const auto [in, out] = batch.to(me.device);
      totals += task->loss(net->forward(in), out).totals();
    }
    dist::all_reduce(totals, dist::ReduceOp::SUM);
    return task->score(totals);
  };

  double best_so_far = std::numeric_limits<double>::infinity();

  const auto improved = [&](const tasks::Score& score) {
    auto answer = torch::tensor({me.rank == 0 && score < best_so_far ? 1 : 0},
                                torch::TensorOptions(torch::kInt64).device(me.device));
    dist::broadcast(answer, 0);
    return answer.item<int64_t>() == 1;
  };

  // ---- a run before this one ----
  if (opts.from) {
    const std::filesystem::path earlier = *opts.from;
    dist::load_sharded_model(*net, *adamw, earlier);
  }
  // ---- training ----
  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < opts.epochs && !progress.finished()) {
    s_train.set_epoch(epoch);
    net->train();
    auto totals = task->no_totals(me.device);
    for (auto& batch : *l_train) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& on_host) {
        const auto [in, out] = on_host.to(me.device);
        adamw->zero_grad();
        const auto value = task->loss(net->forward(in), out);
        value.mean().backward();
        adamw->step();
        return value;
      });
      rates->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    dist::all_reduce(totals, dist::ReduceOp::SUM);
    const auto train_score = task->score(totals);
    const auto valid_score = validate(*l_valid);
    progress.report(train_score, valid_score);
    ++epoch;
    dist::print0("epoch {}/{}: training loss {}, validation loss {}", epoch, opts.epochs,
                 task->format(train_score), task->format(valid_score));
    if (improved(valid_score)) {
      best = valid_score;
      best_so_far = valid_score;
      dist::save_sharded_model(*net, *adamw, opts.output / "model-best");
    }
  }
  // ---- the end ----
  const auto result = validate(*l_test);
  progress.report(result);
  dist::print0("best validation loss: {}", task->describe(best));
  dist::print0("test loss: {}", task->describe(result));
  dist::save0(*net, opts.output / "model-final.safetensors");
  dist::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
