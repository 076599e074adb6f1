#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Larger batches, larger steps.
void scale_rates(torch::optim::Optimizer& optimizer, double factor) {
  for (auto& group : optimizer.param_groups()) {
    auto& settings = group.options();
    settings.set_lr(settings.get_lr() * factor);
  }
}

torch::Tensor mean_over_all_targets(const tasks::Loss& loss) {
  const auto counts =
      all_gather(torch::full({}, double(loss.count), torch::kDouble).to(loss.sum.device()));
  const auto weight = double(loss.count) / counts.mean();
  return loss.mean() * weight;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const torch::Device here = world.device;

  const auto task = rank0_first([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions whole{.shuffle = false, .pad = false};

  const auto module = task->make_model();
  module->to(here);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  scale_rates(*optimizer, std::sqrt(double(world.world_size)));

  const auto add_up = [&](torch::Tensor totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto evaluate = [&](const tasks::Dataset& set) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto loader = data::make_data_loader(set, DistributedSampler(*set.size(), whole),
                                         data::DataLoaderOptions(options.batch_size));
    auto totals = task->no_totals(here);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(here);
      totals += task->loss(model->forward(input), target).totals();
    }
    return add_up(totals);
  };
  const auto train = [&](auto& loader) {
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(here));
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(here);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      mean_over_all_targets(loss).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    return add_up(totals);
  };

  auto loader = data::make_data_loader(train_set, sampler,
                                       data::DataLoaderOptions(options.batch_size).drop_last(true));
  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = train(*loader);
    synchronize_buffers(*model);
    const auto valid = evaluate(valid_set);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(test_set);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
