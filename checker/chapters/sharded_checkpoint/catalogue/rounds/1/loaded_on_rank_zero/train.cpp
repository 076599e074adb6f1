// Rank 0 reads the files; the wrapper gives its values to the others anyway.
#include <torch/torch.h>

#include <functional>
#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using distributed_utils::DistributedSampler;
using distributed_utils::FullyShardedDataParallel;
using distributed_utils::print0;
using torch::data::DataLoaderOptions;
using torch::data::make_data_loader;

/// Adds up the losses of all batches, on all ranks. `body` returns false to stop.
template <typename Loader, typename Body>
tasks::Score over(const tasks::Task& task, Loader& loader, torch::Device device, Body&& body) {
  auto sum = task.no_totals(device);
  for (auto& batch : loader) {
    if (!body(batch, sum)) break;
  }
  distributed_utils::all_reduce(sum);
  return task.score(sum);
}

static int trainer(int argc, char** argv) {
  const auto options = tasks::parse_options(argc, argv, {.starts = true});
  tasks::apply(options);
  const auto place =
      distributed_utils::setup({.backend = options.backend, .device = options.device});
  const torch::Device device = place.device;
  const auto task = tasks::make_task(options);

  auto network = task->make_model();
  network->to(device);
  FullyShardedDataParallel<tasks::Model> sharded(network, {.units = network->blocks()});
  const auto optimizer = task->make_optimizer(sharded->parameters());
  if (options.from && place.rank == 0) {
    distributed_utils::load_sharded_model(*sharded, *optimizer, *options.from);
  }
  distributed_utils::barrier();
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler shuffled(*train_set.size(),
                              {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSampler valid_part(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_part(*test_set.size(), {.shuffle = false, .pad = false});
  const auto train_loader =
      make_data_loader(train_set, shuffled, DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader =
      make_data_loader(valid_set, valid_part, DataLoaderOptions(options.batch_size));
  const auto test_loader =
      make_data_loader(test_set, test_part, DataLoaderOptions(options.batch_size));

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto one_step = [&](const tasks::Batch& batch) {
    const auto moved = batch.to(device);
    optimizer->zero_grad();
    const auto loss = task->loss(sharded->forward(moved.input), moved.target);
    loss.mean().backward();
    optimizer->step();
    return loss;
  };
  const auto train = [&](auto& loader) {
    sharded->train();
    return over(*task, loader, device, [&](const tasks::Batch& batch, torch::Tensor& sum) {
      const auto loss = progress.take_step(batch, one_step);
      schedule->step();
      sum += loss.totals();
      return progress.step(loss);
    });
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    sharded->eval();
    const auto whole = sharded->summon_full_params();
    return over(*task, loader, device, [&](const tasks::Batch& batch, torch::Tensor& sum) {
      const auto moved = batch.to(device);
      sum += task->loss(sharded->forward(moved.input), moved.target).totals();
      return true;
    });
  };
  tasks::Score lowest;
  for (int64_t epoch = 0; epoch != options.epochs; ++epoch) {
    if (progress.finished()) break;
    shuffled.set_epoch(epoch);
    const tasks::Score t = train(*train_loader);
    const tasks::Score v = evaluate(*valid_loader);
    progress.report(t, v);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(t), task->format(v));
    if (v < lowest) {
      lowest = v;
      distributed_utils::save_sharded_model(*sharded, *optimizer, options.output / "model-best");
    }
  }
  const tasks::Score final_score = evaluate(*test_loader);
  progress.report(final_score);
  print0("best validation loss: {}", task->describe(lowest));
  print0("test loss: {}", task->describe(final_score));
  distributed_utils::save0(*sharded, options.output / "model-final.safetensors");
  distributed_utils::destroy_process_group();
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  try {
    return trainer(argc, argv);
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
