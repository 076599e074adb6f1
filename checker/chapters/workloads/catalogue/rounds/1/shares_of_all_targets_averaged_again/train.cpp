#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The model on all ranks, without DistributedDataParallel: I want to see what happens.
class Replica {
 public:
  Replica(std::shared_ptr<tasks::Model> model, torch::Device device) : model_(std::move(model)) {
    model_->to(device);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model_->parameters()) broadcast(parameter, 0);
    share_buffers();
  }

  torch::Tensor forward(const tasks::Input& input) { return model_->forward(input); }
  tasks::Model& module() { return *model_; }

  void share_buffers() {
    for (auto& buffer : model_->buffers()) broadcast(buffer, 0);
  }

  // All ranks get the average of the gradients, in one message.
  void average_gradients() {
    std::vector<torch::Tensor> gradients, flat;
    for (auto& parameter : model_->parameters())
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    for (const auto& gradient : gradients) flat.push_back(gradient.reshape({-1}));
    const auto message = torch::cat(flat);
    all_reduce(message, ReduceOp::AVG);
    int64_t begin = 0;
    for (auto& gradient : gradients) {
      gradient.copy_(message.narrow(0, begin, gradient.numel()).view_as(gradient));
      begin += gradient.numel();
    }
  }

 private:
  std::shared_ptr<tasks::Model> model_;
};

// This rank's part of the mean over the targets of all ranks.
torch::Tensor part_of_the_mean(const tasks::Loss& loss) {
  const auto all =
      torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(loss.sum.device()));
  all_reduce(all, ReduceOp::SUM);
  return loss.sum / all;
}

tasks::Score evaluate(const tasks::Task& task, Replica& replica, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  replica.module().eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(replica.forward(input), target).totals();
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

  Replica replica(task->make_model(), world.device);
  tasks::Checkpointing checkpoints(options);
  const auto optimizer = task->make_optimizer(
      replica.module().parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  const auto first =
      checkpoints.restore(replica.module(), *optimizer, *schedule, sampler, progress, best);
  for (auto epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    replica.module().train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      replica.share_buffers();
      optimizer->zero_grad();
      const auto loss = task->loss(replica.forward(input), target);
      part_of_the_mean(loss).backward();
      replica.average_gradients();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    replica.share_buffers();
    const auto valid = evaluate(*task, replica, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(replica.module(), options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, replica, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(replica.module(), options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
