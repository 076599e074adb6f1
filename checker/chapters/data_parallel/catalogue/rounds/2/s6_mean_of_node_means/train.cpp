// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Averages gradients in two levels: within a node, where links are fast, then between one leader of
// each node, then back. Between nodes each gradient travels once a node instead of once a rank.
class NodeReducer {
 public:
  explicit NodeReducer(const World& world) : leads_(world.local_rank == 0) {
    const auto mine = torch::full({1}, world.local_rank, torch::kInt64).to(world.device);
    const auto local_ranks = all_gather(mine).reshape({-1}).cpu();
    std::vector<std::vector<int>> nodes;
    std::vector<int> leaders;
    for (int rank = 0; rank < world.world_size; ++rank) {
      if (local_ranks[rank].item<int64_t>() == 0) {
        nodes.emplace_back();
        leaders.push_back(rank);
      }
      nodes.back().push_back(rank);
    }
    for (const auto& node : nodes) {
      if (const auto group = new_group(node)) node_ = *group;
    }
    if (const auto group = new_group(leaders)) leaders_ = *group;
  }

  void average(const torch::Tensor& tensor) const {
    all_reduce(tensor, ReduceOp::AVG, node_);
    if (leads_) all_reduce(tensor, ReduceOp::AVG, leaders_);
    broadcast(tensor, 0, node_);
  }

 private:
  bool leads_;
  Group node_;
  Group leaders_;
};

// A model of which every rank holds a replica.
class Replica {
 public:
  Replica(std::shared_ptr<tasks::Model> model, const World& world)
      : model_(std::move(model)), reducer_(world) {
    model_->to(world.device);
    for (const auto& parameter : model_->parameters()) broadcast(parameter.detach(), 0);
    for (const auto& buffer : model_->buffers()) broadcast(buffer.detach(), 0);
  }

  tasks::Model* operator->() const { return model_.get(); }
  tasks::Model& operator*() const { return *model_; }

  void backward(const torch::Tensor& loss) const {
    loss.backward();
    for (const auto& parameter : model_->parameters()) {
      if (parameter.grad().defined()) reducer_.average(parameter.grad());
    }
  }

 private:
  std::shared_ptr<tasks::Model> model_;
  NodeReducer reducer_;
};

tasks::Score train(const tasks::Task& task, const Replica& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    model.backward(loss.mean());
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const Replica& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const Replica model(task->make_model(), world);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
