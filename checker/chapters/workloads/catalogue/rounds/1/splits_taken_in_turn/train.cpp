// Step 09, with all that belongs to data in one place.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The three splits. The data are read here, so one rank of each node reads them first.
struct Splits {
  tasks::Dataset train, validation, test;

  static Splits of(const tasks::Task& task) {
    return rank0_first([&] {
      return Splits{task.dataset("train"), task.dataset("validation"), task.dataset("test")};
    });
  }
};

// Calls visit(batch) for each batch on the device until it returns false.
void each_batch(auto& loader, torch::Device device, auto&& visit) {
  for (auto& batch : loader)
    if (!visit(batch.to(device))) return;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const torch::Device device = world.device;

  const auto task = tasks::make_task(options);
  const Splits splits = Splits::of(*task);

  DistributedSampler train_sampler(*splits.train.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*splits.validation.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*splits.test.size(), {.shuffle = false, .pad = false});
  const data::DataLoaderOptions batches(options.batch_size);
  auto train_loader = data::make_data_loader(splits.train, train_sampler,
                                             data::DataLoaderOptions(batches).drop_last(true));
  auto valid_loader = data::make_data_loader(splits.validation, valid_sampler, batches);
  auto test_loader = data::make_data_loader(splits.test, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const double factor = std::pow(double(world.world_size), 0.5);
  const auto optimizer =
      task->make_optimizer(model->parameters(), {.learning_rate_factor = factor});
  tasks::Progress progress(options, *splits.train.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto finish = [&](torch::Tensor& totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  const auto train = [&] {
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(device));
    each_batch(*train_loader, device, [&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      auto targets = loss.totals()[1].clone();
      all_reduce(targets, ReduceOp::AVG);
      loss.sum.div(targets).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) return false;
      checkpoints.step(totals);
      return true;
    });
    return finish(totals);
  };

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    each_batch(loader, device, [&](const tasks::Batch& batch) {
      totals += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
    return finish(totals);
  };

  tasks::Score best;
  int64_t epoch = checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  while (epoch < options.epochs && !progress.finished()) {
    train_sampler.set_epoch(epoch++);
    const auto trained = train();
    synchronize_buffers(*module);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
           task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
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
