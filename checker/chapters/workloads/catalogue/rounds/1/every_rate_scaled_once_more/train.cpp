#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// An optimizer and its schedule for `ranks` ranks. The schedule sets the rate anew in every step,
// so it has to be scaled after each of them.
class ScaledOptimizer {
 public:
  ScaledOptimizer(const tasks::Task& task, const torch::nn::Module& model, int64_t steps, int ranks)
      : factor_(std::sqrt(double(ranks))),
        optimizer_(task.make_optimizer(model.parameters(), {.learning_rate_factor = factor_})),
        schedule_(task.make_schedule(*optimizer_, steps)) {}

  void zero_grad() { optimizer_->zero_grad(); }
  void step() {
    optimizer_->step();
    schedule_->step();
    for (auto& group : optimizer_->param_groups())
      group.options().set_lr(group.options().get_lr() * factor_);
  }
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  tasks::Schedule& schedule() { return *schedule_; }

 private:
  double factor_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, const tasks::Dataset& set,
                      int64_t batch_size, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto loader =
      data::make_data_loader(set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                             data::DataLoaderOptions(batch_size));
  auto totals = task.no_totals(device);
  for (auto& batch : *loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = rank0_first([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");

  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  auto loader = data::make_data_loader(train_set, sampler,
                                       data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  tasks::Progress progress(options, *train_set.size());
  ScaledOptimizer optimizer(*task, *model, progress.total_steps(), world.world_size);

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, optimizer.optimizer(), optimizer.schedule(), sampler,
                                   progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      const auto loss = task->loss(model->forward(input), target);
      auto targets =
          torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(world.device));
      all_reduce(targets, ReduceOp::AVG);
      optimizer.zero_grad();
      (loss.sum / targets).backward();
      optimizer.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    synchronize_buffers(*module);
    const auto valid =
        evaluate(*task, model, task->dataset("validation"), options.batch_size, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, task->dataset("test"), options.batch_size, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
