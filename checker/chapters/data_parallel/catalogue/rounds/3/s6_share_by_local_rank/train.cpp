#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// All that a split needs, made from one description of who takes which card.
struct Share {
  int number;
  int of;
};

struct Part {
  tasks::Dataset set;
  DistributedSampler sampler;
  int64_t batch;
  bool learns;

  Part(const tasks::Task& task, const char* name, Share share, const tasks::Options& options)
      : set(task.dataset(name)),
        sampler(*set.size(), std::string(name) == "train"
                                 ? DistributedSamplerOptions{.shuffle = true, .seed = options.seed, .drop_last = true,
                                                             .num_replicas = share.of, .rank = share.number}
                                 : DistributedSamplerOptions{.shuffle = false, .pad = false,
                                                             .num_replicas = share.of, .rank = share.number}),
        batch(options.batch_size), learns(std::string(name) == "train") {}

  auto batches() const {
    return data::make_data_loader(set, sampler, data::DataLoaderOptions(batch).drop_last(learns));
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const Share share{world.local_rank, world.world_size};
  const auto task = tasks::make_task(options);
  Part train(*task, "train", share, options);
  const Part valid(*task, "validation", share, options);
  const Part test(*task, "test", share, options);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train.set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto pass = [&](const Part& part) {
    const torch::AutoGradMode mode(part.learns);
    model->train(part.learns);
    auto totals = task->no_totals(world.device);
    const auto loader = part.batches();
    for (auto& batch : *loader) {
      const auto here = batch.to(world.device);
      if (part.learns) optimizer->zero_grad();
      const auto loss = task->loss(model->forward(here.input), here.target);
      totals += loss.totals();
      if (!part.learns) continue;
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train.sampler.set_epoch(epoch);
    const auto trained = pass(train);
    const auto seen = pass(valid);
    progress.report(trained, seen);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(seen));
    if (seen < best) {
      best = seen;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto tested = pass(test);
  progress.report(tested);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(tested));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
