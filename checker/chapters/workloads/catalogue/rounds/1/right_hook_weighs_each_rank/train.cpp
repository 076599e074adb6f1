#include <fmt/format.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This rank's part of the targets of all ranks in the present step.
struct Share {
  double value = 1;

  void find(int64_t count, torch::Device device) {
    const auto all = torch::full({}, double(count), torch::dtype(torch::kDouble).device(device));
    all_reduce(all, ReduceOp::SUM);
    value = double(count) / all.item<double>();
  }
};

// Each rank's gradients are those of its own mean. They count as much as its share of the targets.
CommHook weighing_hook(const std::shared_ptr<const Share>& share) {
  return [share](const Group& group, c10d::GradBucket& bucket) {
    bucket.getBufferRef().mul_(share->value);
    std::vector<torch::Tensor> tensors{bucket.getBufferRef()};
    c10d::AllreduceOptions how;
    how.reduceOp = c10d::ReduceOp::SUM;
    auto work = group_or_world(group)->allreduce(tensors, how);
    return work->getFuture()->then(
        [tensors](c10::ivalue::Future&) { return c10::IValue(tensors[0]); },
        c10::TensorType::get());
  };
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  std::shared_ptr<tasks::Task> task;
  rank0_first([&] { task = tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader =
      data::make_data_loader(valid_set, DistributedSampler(*valid_set.size(), in_order),
                             data::DataLoaderOptions(options.batch_size));
  auto test_loader =
      data::make_data_loader(test_set, DistributedSampler(*test_set.size(), in_order),
                             data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto share = std::make_shared<Share>();
  model->register_comm_hook(weighing_hook(share));
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto walk = [&](auto& loader, torch::Tensor totals, auto&& learn) {
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if (!learn(loss, totals)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto learn = [&](const tasks::Loss& loss, const torch::Tensor& totals) {
    share->find(loss.count, world.device);
    optimizer->zero_grad();
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    const bool more = progress.step(loss);
    if (more) checkpoints.step(totals);
    return more;
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return walk(loader, task->no_totals(world.device), [](auto&&...) { return true; });
  };

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    const auto trained =
        walk(*train_loader, checkpoints.begin_epoch(task->no_totals(world.device)), learn);
    synchronize_buffers(*model);
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
