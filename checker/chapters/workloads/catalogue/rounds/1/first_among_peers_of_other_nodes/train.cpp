#include <fmt/format.h>
#include <torch/torch.h>

#include <map>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The ranks that have my place on their nodes, so that there is one of each node in the group.
Group one_rank_of_each_node(const World& world) {
  const auto place = torch::tensor({int64_t{world.local_rank}}, torch::kLong).to(world.device);
  const auto places = all_gather(place).cpu();
  std::map<int64_t, std::vector<int>> ranks_at;
  for (int rank = 0; rank < world.world_size; ++rank)
    ranks_at[places[rank].item<int64_t>()].push_back(rank);
  Group mine;
  for (const auto& [where, ranks] : ranks_at)
    if (const auto group = new_group(ranks)) mine = *group;
  return mine;
}

class TargetMean {
 public:
  explicit TargetMean(torch::Device device)
      : count_(torch::zeros({}, torch::dtype(torch::kDouble).device(device))) {}

  torch::Tensor operator()(const tasks::Loss& loss) {
    count_.fill_(double(loss.count));
    all_reduce(count_, ReduceOp::AVG);
    return loss.sum / count_.clone();
  }

 private:
  torch::Tensor count_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
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
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const torch::Device device = world.device;

  // Each node has a folder of its own, so one rank of each node has to be first.
  const auto nodes = one_rank_of_each_node(world);
  const auto task = rank0_first([&] { return tasks::make_task(options); }, nodes);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader =
      data::make_data_loader(valid_set, valid_sampler, data::DataLoaderOptions(options.batch_size));
  auto test_loader =
      data::make_data_loader(test_set, test_sampler, data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  TargetMean target_mean(device);

  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (int64_t epoch = first; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      model->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      target_mean(loss).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    synchronize_buffers(*model);
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
