#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace {

using Net = tasks::Model;
using Wrapped = FullyShardedDataParallel<Net>;

// One optimizer step. The wrapper has sharded the parameters inside the network, so the network can
// be used as before.
tasks::Loss descend(const tasks::Task& task, Net& net, torch::optim::Optimizer& optimizer,
                    const tasks::Batch& batch, torch::Device device) {
  const auto on_device = batch.to(device);
  optimizer.zero_grad();
  auto loss = task.loss(net.forward(on_device.input), on_device.target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score inspect(const tasks::Task& task, Wrapped& wrapped, auto& loader,
                     torch::Device device) {
  const torch::NoGradGuard no_grad;
  wrapped->eval();
  const auto summoned = wrapped->summon_full_params();
  auto sums = task.no_totals(device);
  for (auto& batch : loader) {
    const auto on_device = batch.to(device);
    sums += task.loss(wrapped->forward(on_device.input), on_device.target).totals();
  }
  all_reduce(sums, ReduceOp::SUM);
  return task.score(sums);
}

void run(const tasks::Options& options) {
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler deal(*train_set.size(),
                          {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto plain = torch::data::DataLoaderOptions(options.batch_size);
  auto train_loader = torch::data::make_data_loader(
      train_set, deal, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}), plain);
  auto test_loader = torch::data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}), plain);

  const auto net = task->make_model();
  net->to(device);
  Wrapped wrapped(net, {.units = net->blocks()});
  const auto optimizer = task->make_optimizer(wrapped->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    deal.set_epoch(epoch);
    net->train();
    auto sums = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& one) {
        return descend(*task, *net, *optimizer, one, device);
      });
      schedule->step();
      sums += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(sums, ReduceOp::SUM);
    const auto trained = task->score(sums);
    const auto valid = inspect(*task, wrapped, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*wrapped, options.output / "model-best.safetensors");
    }
  }
  const auto test = inspect(*task, wrapped, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*wrapped, options.output / "model-final.safetensors");
  destroy_process_group();
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  run(options);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
