#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Evaluates a model over whole splits. The model that it evaluates is the same on all ranks: its
// running statistics are the mean of what the ranks saw.
class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const std::shared_ptr<tasks::Model>& model,
            const tasks::Options& options, torch::Device device)
      : task_(task), model_(model), batch_size_(options.batch_size), device_(device) {}

  void settle_statistics() const {
    const torch::NoGradGuard no_grad;
    for (auto& buffer : model_->buffers()) {
      if (!buffer.is_floating_point()) {
        broadcast(buffer, 0);
        continue;
      }
      auto mean = buffer.to(torch::kDouble);
      all_reduce(mean, ReduceOp::SUM);
      buffer.copy_(mean / get_world_size());
    }
  }

  tasks::Score operator()(const std::string& split) const {
    const torch::NoGradGuard no_grad;
    const Evaluating evaluating(*model_);
    const auto set = task_.dataset(split);
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    auto loader = data::make_data_loader(set, sampler, data::DataLoaderOptions(batch_size_));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  // The model is in evaluation mode while this lives.
  class Evaluating {
   public:
    explicit Evaluating(torch::nn::Module& module) : module_(module) { module_.eval(); }
    ~Evaluating() { module_.train(); }
    Evaluating(const Evaluating&) = delete;
    Evaluating& operator=(const Evaluating&) = delete;

   private:
    torch::nn::Module& module_;
  };

  const tasks::Task& task_;
  std::shared_ptr<tasks::Model> model_;
  int64_t batch_size_;
  torch::Device device_;
};

// The optimizer of a larger batch: its rates are what they are for one rank, times the root of the
// number of ranks. A schedule that is made after this multiplies these rates.
std::unique_ptr<torch::optim::Optimizer> optimizer_for(const tasks::Task& task,
                                                       const torch::nn::Module& model, int ranks) {
  auto optimizer = task.make_optimizer(model.parameters());
  for (auto& group : optimizer->param_groups())
    group.options().set_lr(std::sqrt(double(ranks)) * group.options().get_lr());
  return optimizer;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  // The others of a node stand before the first barrier until its first rank comes to the second.
  std::shared_ptr<tasks::Task> task;
  const auto make = [&] { task = tasks::make_task(options); };
  if (world.local_rank == 0) make();
  barrier();
  if (world.local_rank != 0) make();
  barrier();

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  auto loader = data::make_data_loader(train_set, sampler,
                                       data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = optimizer_for(*task, *model, world.world_size);
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Evaluator evaluate(*task, module, options, world.device);

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  model->train();
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      // Sum and number of this batch on all ranks. Only the number is needed.
      const auto everybodys = loss.totals().slice(0, 0, 2).clone();
      all_reduce(everybodys, ReduceOp::SUM);
      const auto mean = everybodys[1] / world.world_size;
      (loss.sum / mean).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    evaluate.settle_statistics();
    const auto valid = evaluate("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
