// Step 06: One rank speaks, one rank writes.
// A TrainerState as in HuggingFace, which knows is_world_process_zero, and a printer callback.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What belongs to a run and outlives each of its parts.
struct TrainerState {
  explicit TrainerState(const tasks::Options& of)
      : options(of), is_world_process_zero(get_rank() == 0) {}

  const tasks::Options& options;
  bool is_world_process_zero;
  int64_t epoch = 0;
  tasks::Score best_metric;
};

// Says what happened, on the world's rank 0.
class PrinterCallback {
 public:
  PrinterCallback(const TrainerState& state, const tasks::Task& task)
      : state_(state), task_(task) {}

  void on_epoch_end(const tasks::Score& trained, const tasks::Score& valid) const {
    line("epoch {}/{}: training loss {}, validation loss {}", state_.epoch + 1,
         state_.options.epochs, task_.format(trained), task_.format(valid));
  }
  void on_train_end(const tasks::Score& test) const {
    line("best validation loss: {}", task_.describe(state_.best_metric));
    line("test loss: {}", task_.describe(test));
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) const {
    if (!state_.is_world_process_zero) return;
    fmt::println(format, std::forward<Args>(args)...);
  }

  const TrainerState& state_;
  const tasks::Task& task_;
};

tasks::Score prediction_loop(const tasks::Task& task, auto& model, auto& loader,
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

tasks::Score inner_training_loop(const tasks::Task& task, auto& model, auto& loader,
                                 auto& optimizer, tasks::Schedule& schedule, torch::Device device,
                                 tasks::Progress& progress) {
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

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  TrainerState state(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const PrinterCallback printer(state, *task);
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

  for (; state.epoch < options.epochs && !progress.finished(); ++state.epoch) {
    train_sampler.set_epoch(state.epoch);
    const auto trained = inner_training_loop(*task, model, *train_loader, *optimizer, *schedule,
                                             device, progress);
    const auto valid = prediction_loop(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    printer.on_epoch_end(trained, valid);
    if (valid < state.best_metric) {
      state.best_metric = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = prediction_loop(*task, model, *test_loader, device);
  progress.report(test);
  printer.on_train_end(test);
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
