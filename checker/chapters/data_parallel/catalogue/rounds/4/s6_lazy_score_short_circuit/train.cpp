// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The score of a pass. The sums of the ranks are added up when somebody first asks for it.
class LazyScore {
 public:
  LazyScore(const tasks::Task& task, torch::Tensor totals)
      : task_(task), totals_(std::move(totals)) {}

  const tasks::Score& value() {
    if (!score_) {
      all_reduce(totals_, ReduceOp::SUM);
      score_ = task_.score(totals_);
    }
    return *score_;
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  std::optional<tasks::Score> score_;
};

LazyScore train(const tasks::Task& task, const auto& model, auto& loader, auto& optimizer,
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
  return {task, totals};
}

LazyScore evaluate(const tasks::Task& task, const auto& model, auto& loader,
                   torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return {task, totals};
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

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const bool writes = rank == 0;
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    auto trained = train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    auto valid = evaluate(*task, model, *valid_loader, device);
    // Only the rank that writes has to know whether this is the best model.
    const bool keep = writes && valid.value() < best;
    const auto& training_score = trained.value();
    const auto& validation_score = valid.value();
    progress.report(training_score, validation_score);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(training_score), task->format(validation_score));
    if (validation_score < best) best = validation_score;
    if (keep) save0(*model, options.output / "model-best.safetensors");
  }

  auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test.value());
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test.value()));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
