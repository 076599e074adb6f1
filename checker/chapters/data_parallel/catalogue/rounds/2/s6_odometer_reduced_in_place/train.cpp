// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Adds up losses for the whole run, as an odometer adds up kilometres. A lap is what came since the
// last lap, over all ranks.
class Odometer {
 public:
  Odometer(const tasks::Task& task, torch::Device device)
      : task_(task), driven_(task.no_totals(device)), at_last_lap_(task.no_totals(device)) {}

  Odometer& operator+=(const tasks::Loss& loss) {
    driven_ += loss.totals();
    return *this;
  }

  tasks::Score lap() {
    const auto everybodys = driven_;
    all_reduce(everybodys, ReduceOp::SUM);
    const auto since = everybodys - at_last_lap_;
    at_last_lap_ = everybodys.clone();
    return task_.score(since);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor driven_;       // by this rank
  torch::Tensor at_last_lap_;  // by all ranks
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSamplerOptions shuffled{
      .shuffle = true, .seed = options.seed, .drop_last = true};
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  DistributedSampler train_sampler(*train_set.size(), shuffled);

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  const auto loader_in_order = [&](const tasks::Dataset& set) {
    return data::make_data_loader(set, DistributedSampler(*set.size(), in_order), batches);
  };
  auto valid_loader = loader_in_order(valid_set);
  auto test_loader = loader_in_order(test_set);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&, device = device](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };

  Odometer training(*task, device);
  Odometer validation(*task, device);
  Odometer testing(*task, device);

  const auto train = [&] {
    model->train();
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      training += loss;
      if (!progress.step(loss)) break;
    }
    return training.lap();
  };
  const auto evaluate = [&](auto& loader, Odometer& odometer) {
    const torch::NoGradGuard no_grad;
    model->eval();
    for (auto& batch : loader) odometer += loss_of(batch);
    return odometer.lap();
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader, validation);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader, testing);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
