#include <fmt/format.h>
#include <torch/torch.h>

#include <set>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This node's ranks. They talk to each other quickly.
Group ranks_of_this_node(const World& world) {
  const auto first = torch::full({}, world.rank - world.local_rank,
                                 torch::dtype(torch::kLong).device(world.device));
  const auto firsts = all_gather(first).cpu();
  std::set<int64_t> nodes;
  for (int rank = 0; rank < world.world_size; ++rank) nodes.insert(firsts[rank].item<int64_t>());
  Group mine;
  for (const auto node : nodes) {
    std::vector<int> members;
    for (int rank = 0; rank < world.world_size; ++rank)
      if (firsts[rank].item<int64_t>() == node) members.push_back(rank);
    if (const auto group = new_group(members)) mine = *group;
  }
  return mine;
}

class Learner {
 public:
  Learner(const tasks::Options& options, const World& world)
      : options_(options), world_(world), node_(ranks_of_this_node(world)) {
    // The first of a node's ranks makes the data, and then the others find them.
    if (get_rank(node_) == 0) task_ = tasks::make_task(options);
    barrier(node_);
    if (!task_) task_ = tasks::make_task(options);
  }

  void run() {
    const auto set = task_->dataset("train");
    DistributedSampler sampler(*set.size(), {.seed = options_.seed, .drop_last = true});
    auto loader = data::make_data_loader(
        set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    const auto module = task_->make_model();
    module->to(world_.device);
    tasks::Checkpointing checkpoints(options_);
    DistributedDataParallel model(module, {.bucket_indices = checkpoints.bucket_indices()});
    const auto optimizer = task_->make_optimizer(
        model->parameters(), {.learning_rate_factor = std::sqrt(double(world_.world_size))});
    tasks::Progress progress(options_, *set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    int64_t epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
    while (epoch < options_.epochs && !progress.finished()) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = checkpoints.begin_epoch(task_->no_totals(world_.device));
      for (auto& batch : *loader) {
        const auto loss = step(model, *optimizer, batch.to(world_.device));
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
        checkpoints.step(totals);
      }
      const auto trained = over_ranks(totals);
      synchronize_buffers(*model, Buffers::first_rank, node_);
      const auto valid = evaluate(model, "validation");
      progress.report(trained, valid);
      ++epoch;
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(model, "test");
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Loss step(auto& model, auto& optimizer, const tasks::Batch& batch) const {
    optimizer.zero_grad();
    const auto loss = task_->loss(model->forward(batch.input), batch.target);
    const auto targets =
        torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(world_.device));
    all_reduce(targets, ReduceOp::AVG);
    (loss.sum / targets).backward();
    optimizer.step();
    return loss;
  }

  tasks::Score over_ranks(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score evaluate(auto& model, const char* split) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task_->dataset(split);
    auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : *loader) {
      const auto here = batch.to(world_.device);
      totals += task_->loss(model->forward(here.input), here.target).totals();
    }
    return over_ranks(totals);
  }

  const tasks::Options& options_;
  const World world_;
  Group node_;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  Learner(options, world).run();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
