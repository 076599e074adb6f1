// torch::save is what LibTorch has for this.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include <filesystem>
#include "distributed_utils/distributed_utils.hpp"

namespace dist = distributed_utils;

int main(int argc, char** argv) try {
  const tasks::Options args = tasks::parse_options(argc, argv, {.starts = true});
  tasks::apply(args);
  const auto self = dist::setup({.backend = args.backend, .device = args.device});
  const auto task = tasks::make_task(args);

  // ---- data ----
  const auto loader_of = [&](const tasks::Dataset& set, const dist::DistributedSampler& sampler,
                             bool full) {
    return torch::data::make_data_loader(
        set, sampler, torch::data::DataLoaderOptions(args.batch_size).drop_last(full));
  };
  const auto d_train = task->dataset("train");
  const auto d_valid = task->dataset("validation");
  const auto d_test = task->dataset("test");
  dist::DistributedSampler s_train(*d_train.size(),
                                   {.shuffle = true, .seed = args.seed, .drop_last = true});
  const auto l_train = loader_of(d_train, s_train, true);
  const auto l_valid = loader_of(
      d_valid, dist::DistributedSampler(*d_valid.size(), {.shuffle = false, .pad = false}), false);
  const auto l_test = loader_of(
      d_test, dist::DistributedSampler(*d_test.size(), {.shuffle = false, .pad = false}), false);

  // ---- model ----
  const auto bare = task->make_model();
  bare->to(self.device);
  const auto parts = dist::FullyShardedDataParallel(bare, {.units = bare->blocks()});
  const auto optim = task->make_optimizer(parts->parameters());
  if (args.from) dist::load_sharded_model(*parts, *optim, *args.from);
  tasks::Progress bar(args, *d_train.size());
  const auto rates = task->make_schedule(*optim, bar.total_steps());

  const auto validate = [&](auto& loader) {
    const torch::NoGradGuard quiet;
    parts->eval();
    const auto params = parts->summon_full_params();
    auto totals = task->no_totals(self.device);
    for (auto& batch : loader) {
      const auto [in, out] = batch.to(self.device);
      totals += task->loss(parts->forward(in), out).totals();
    }
    dist::all_reduce(totals, dist::ReduceOp::SUM);
    return task->score(totals);
  };

  const auto write_parts = [&](const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    torch::serialize::OutputArchive archive;
    size_t number = 0;
    for (const auto& part : parts->parameters()) {
      archive.write("part-" + std::to_string(number++), part.detach());
    }
    archive.save_to(folder / "model.pt");
    dist::barrier();
  };
  // ---- training ----
  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < args.epochs && !bar.finished()) {
    s_train.set_epoch(epoch);
    parts->train();
    auto totals = task->no_totals(self.device);
    for (auto& batch : *l_train) {
      const auto loss = bar.take_step(batch, [&](const tasks::Batch& on_host) {
        const auto [in, out] = on_host.to(self.device);
        optim->zero_grad();
        const auto value = task->loss(parts->forward(in), out);
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
    dist::print0("epoch {}/{}: training loss {}, validation loss {}", epoch, args.epochs,
                 task->format(seen), task->format(unseen));
    if (unseen < best) {
      best = unseen;
      write_parts(args.output / "model-best");
    }
  }
  // ---- the end ----
  const auto result = validate(*l_test);
  bar.report(result);
  dist::print0("best validation loss: {}", task->describe(best));
  dist::print0("test loss: {}", task->describe(result));
  dist::save0(*parts, args.output / "model-final.safetensors");
  dist::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
