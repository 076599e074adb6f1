// Step 06: the finished trainer. What rank 0 alone does is one class.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// Rank 0's books: what it says, what it writes, and which score was the best. Nothing in here talks
// to other ranks, which have no secretary at all.
class Secretary {
 public:
  Secretary(const tasks::Options& options, const tasks::Task& task)
      : options_(options), task_(task) {}

  void epoch(int64_t number, const tasks::Score& trained, const tasks::Score& valid,
             const torch::nn::Module& model) {
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", number, options_.epochs,
                 task_.format(trained), task_.format(valid));
    std::fflush(stdout);
    if (!(valid < best_)) return;
    best_ = valid;
    write(model, "model-best.safetensors");
  }

  void end(const tasks::Score& test, const torch::nn::Module& model) {
    fmt::println("best validation loss: {}", task_.describe(best_));
    fmt::println("test loss: {}", task_.describe(test));
    std::fflush(stdout);
    write(model, "model-final.safetensors");
  }

 private:
  // Half a file never has the final name.
  void write(const torch::nn::Module& model, const char* name) const {
    const auto path = options_.output / name;
    auto temporary = path;
    temporary += ".part";
    save_file(state_dict(model), temporary);
    fs::rename(temporary, path);
  }

  const tasks::Options& options_;
  const tasks::Task& task_;
  tasks::Score best_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
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
  all_reduce(totals, ReduceOp::SUM);
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

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  std::optional<Secretary> secretary;
  if (rank == 0) secretary.emplace(options, *task);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    if (secretary) secretary->epoch(epoch + 1, trained, valid, *model);
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  if (secretary) secretary->end(test, *model);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
