// One program, from top to bottom. Whole parameters are asked for where the program needs them: for
// the validation and for what is decided after it.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

namespace du = distributed_utils;

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto me = du::setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);

  // Data. All three in one place.
  const auto loader_for = [&](const tasks::Dataset& set, const du::DistributedSampler& sampler,
                              bool drop) {
    return torch::data::make_data_loader(
        set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(drop));
  };
  const auto learn_from = task->dataset("train");
  const auto choose_with = task->dataset("validation");
  const auto judge_with = task->dataset("test");
  du::DistributedSampler dealer(*learn_from.size(),
                                {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto learning = loader_for(learn_from, dealer, true);
  const auto choosing = loader_for(
      choose_with, du::DistributedSampler(*choose_with.size(), {.shuffle = false, .pad = false}),
      false);
  const auto judging = loader_for(
      judge_with, du::DistributedSampler(*judge_with.size(), {.shuffle = false, .pad = false}),
      false);

  // Model.
  const auto transformer = task->make_model();
  transformer->to(me.device);
  du::FullyShardedDataParallelOptions sharding;
  for (const auto& layer : transformer->blocks()) sharding.units.push_back(layer);
  const du::FullyShardedDataParallel<tasks::Model> model(transformer, sharding);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *learn_from.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto score = [&](auto& batches) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(me.device);
    for (auto& batch : batches) {
      const auto [x, y] = batch.to(me.device);
      totals += task->loss(model->forward(x), y).totals();
    }
    du::all_reduce(totals);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    dealer.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(me.device);
    for (auto& batch : *learning) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& host) {
        const auto [x, y] = host.to(me.device);
        optimizer->zero_grad();
        const auto of_batch = task->loss(model->forward(x), y);
        of_batch.mean().backward();
        optimizer->step();
        return of_batch;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    du::all_reduce(totals);
    const auto learned = task->score(totals);

    const auto whole = model->summon_full_params();
    const auto chosen = score(*choosing);
    progress.report(learned, chosen);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(learned), task->format(chosen));
    if (chosen < best) {
      best = chosen;
      du::save0(*model, options.output / "model-best.safetensors");
    }
  }  // whole ends here, before the next epoch trains

  {
    const auto whole = model->summon_full_params();
    const auto verdict = score(*judging);
    progress.report(verdict);
    du::print0("best validation loss: {}", task->describe(best));
    du::print0("test loss: {}", task->describe(verdict));
  }
  du::save0(*model, options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
