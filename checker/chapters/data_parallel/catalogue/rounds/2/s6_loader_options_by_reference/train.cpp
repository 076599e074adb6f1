// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Makes loaders of the two kinds that a trainer needs, from the same base options.
class LoaderFactory {
 public:
  explicit LoaderFactory(const tasks::Options& options)
      : seed_(options.seed), base_(static_cast<size_t>(options.batch_size)) {}

  // Whole batches only, so that every step averages over equally many.
  auto training(const tasks::Dataset& set) {
    const DistributedSampler sampler(*set.size(),
                                     {.shuffle = true, .seed = seed_, .drop_last = true});
    return std::pair(sampler, data::make_data_loader(set, sampler, base_.drop_last(true)));
  }

  // Every sample once.
  auto evaluation(const tasks::Dataset& set) {
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}), base_);
  }

 private:
  uint64_t seed_;
  data::DataLoaderOptions base_;
};

// Goes through a loader and adds up what `visit` returns for each batch, over all ranks. `visit`
// returns nothing when it wants to stop.
template <typename Visit>
tasks::Score fold(const tasks::Task& task, auto& loader, torch::Device device, Visit visit) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [loss, go_on] = visit(batch.to(device));
    totals += loss.totals();
    if (!go_on) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

struct Visited {
  tasks::Loss loss;
  bool go_on = true;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");

  LoaderFactory factory(options);
  auto [train_sampler, train_loader] = factory.training(train_set);
  auto valid_loader = factory.evaluation(task->dataset("validation"));
  auto test_loader = factory.evaluation(task->dataset("test"));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](const tasks::Batch& batch) {
    optimizer->zero_grad();
    auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    const bool go_on = progress.step(loss);
    return Visited{std::move(loss), go_on};
  };
  const auto look = [&](const tasks::Batch& batch) {
    return Visited{task->loss(model->forward(batch.input), batch.target)};
  };

  const auto evaluate = [&, &device = device](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return fold(*task, loader, device, look);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const auto trained = fold(*task, *train_loader, device, learn);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
