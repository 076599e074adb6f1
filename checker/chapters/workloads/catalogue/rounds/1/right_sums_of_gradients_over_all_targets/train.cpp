#include <fmt/format.h>
#include <torch/torch.h>

#include <map>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// c10d without a wrapper around it.
void sum_over_ranks(torch::Tensor tensor) {
  std::vector<torch::Tensor> tensors{std::move(tensor)};
  c10d::AllreduceOptions how;
  how.reduceOp = c10d::ReduceOp::SUM;
  world_group()->allreduce(tensors, how)->wait();
}
void from_rank_zero(torch::Tensor tensor) {
  std::vector<torch::Tensor> tensors{std::move(tensor)};
  c10d::BroadcastOptions how;
  how.rootRank = 0;
  world_group()->broadcast(tensors, how)->wait();
}

// The ranks of this rank's node: those that count from the same first rank.
Group node_of(const World& world) {
  const auto first = int64_t{world.rank} - world.local_rank;
  const auto firsts = all_gather(torch::tensor({first}, torch::kLong).to(world.device)).cpu();
  std::map<int64_t, std::vector<int>> nodes;
  for (int rank = 0; rank < world.world_size; ++rank)
    nodes[firsts[rank].item<int64_t>()].push_back(rank);
  Group mine;
  for (const auto& [unused, ranks] : nodes)
    if (const auto group = new_group(ranks)) mine = *group;
  return mine;
}

// One model on all ranks. The last element of the message is the number of targets, so gradients
// and counts travel together.
class SharedModel {
 public:
  SharedModel(std::shared_ptr<tasks::Model> model, torch::Device device)
      : model_(std::move(model)) {
    model_->to(device);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model_->parameters()) from_rank_zero(parameter.detach());
    same_buffers();
  }

  tasks::Model& operator*() const { return *model_; }
  tasks::Model* operator->() const { return model_.get(); }

  void same_buffers() const {
    for (auto& buffer : model_->buffers()) from_rank_zero(buffer);
  }

  void backward(const tasks::Loss& loss) const {
    loss.sum.backward();
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> flat;
    for (auto& parameter : model_->parameters())
      if (parameter.grad().defined()) flat.push_back(parameter.grad().flatten().to(torch::kDouble));
    flat.push_back(torch::full({1}, double(loss.count), torch::kDouble).to(loss.sum.device()));
    auto message = torch::cat(flat);
    sum_over_ranks(message);
    message /= message[-1].clone();
    int64_t at = 0;
    for (auto& parameter : model_->parameters()) {
      if (!parameter.grad().defined()) continue;
      const auto size = parameter.numel();
      parameter.mutable_grad().copy_(message.narrow(0, at, size).view_as(parameter));
      at += size;
    }
  }

 private:
  std::shared_ptr<tasks::Model> model_;
};

tasks::Score total(const tasks::Task& task, const torch::Tensor& totals) {
  sum_over_ranks(totals);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const SharedModel& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return total(task, totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto node = node_of(world);
  std::shared_ptr<tasks::Task> task;
  if (get_rank(node) == 0) task = tasks::make_task(options);
  barrier(node);
  if (get_rank(node) != 0) task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const SharedModel model(task->make_model(), world.device);
  tasks::Checkpointing checkpoints(options);
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      model.same_buffers();
      const auto loss = task->loss(model->forward(input), target);
      model.backward(loss);
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    const auto trained = total(*task, totals);
    model.same_buffers();
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
