#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Batches of an evaluation are the same in every epoch, so they are fetched once and kept.
struct Kept {
  std::vector<tasks::Batch> batches;
  Kept(const tasks::Dataset& set, const tasks::Options& options, torch::Device device) {
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    auto loader = data::make_data_loader(set, sampler, data::DataLoaderOptions(options.batch_size));
    for (auto& batch : *loader) batches.push_back(batch.to(device));
  }
};

// Everybody gets everybody's sums and adds them up in rank order.
tasks::Score common_score(const tasks::Task& task, const torch::Tensor& totals) {
  return task.score(all_gather(totals).sum(0));
}

tasks::Score evaluate(const tasks::Task& task, auto& model, const Kept& kept, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (const auto& [input, target] : kept.batches)
    totals += task.loss(model->forward(input), target).totals();
  return common_score(task, totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const Kept valid_kept(task->dataset("validation"), options, device);
  const Kept test_kept(task->dataset("test"), options, device);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    // A new sampler and a new loader for each epoch.
    DistributedSampler sampler(*train_set.size(),
                               {.shuffle = true, .seed = options.seed, .drop_last = true});
    sampler.set_epoch(epoch);
    auto loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
    model->train();
    auto totals = task->no_totals(device);
    bool more = true;
    for (auto batch = loader->begin(); more && batch != loader->end(); ) {
      const auto [input, target] = batch->to(device);
      model->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      more = progress.step(loss);
      if (more) ++batch;
    }
    const auto trained = common_score(*task, totals);
    const auto valid = evaluate(*task, model, valid_kept, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, test_kept, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  barrier();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
