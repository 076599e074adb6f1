// Neighbours average first, then the first of each pair, then they tell their partners.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Two levels, as on nodes with fast links inside. Ranks 2i and 2i+1 are a pair.
class TwoLevels {
 public:
  TwoLevels(int rank, int world_size) : leads_(rank % 2 == 0) {
    std::vector<int> leaders;
    for (int first = 0; first < world_size; first += 2) {
      leaders.push_back(first);
      std::vector<int> members{first};
      if (first + 1 < world_size) members.push_back(first + 1);
      if (const auto group = new_group(members)) pair_ = *group;
    }
    if (const auto group = new_group(leaders)) leaders_ = *group;
  }

  void average(const torch::Tensor& gradient) const {
    all_reduce(gradient, ReduceOp::AVG, pair_);
    if (leads_) all_reduce(gradient, ReduceOp::AVG, leaders_);
    broadcast(gradient, 0, pair_);
  }

 private:
  bool leads_;
  Group pair_, leaders_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   const TwoLevels& levels, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  const auto parameters = model->parameters();
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    for (const auto& parameter : parameters)
      if (parameter.grad().defined()) levels.average(parameter.grad());
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

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

  const auto model = task->make_model();
  model->to(device);
  {
    const torch::NoGradGuard no_grad;
    for (auto& tensor : model->parameters()) broadcast(tensor, 0);
    for (auto& tensor : model->buffers()) broadcast(tensor, 0);
  }
  const TwoLevels levels(rank, world_size);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, levels, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
