// Step 06: One rank speaks, one rank writes.
// With context managers, which in C++ are objects: one for the process group, one for the summary.

#include <fmt/format.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Collects what is to be said when everything is done, and says it at the end of its scope.
class RunSummary {
 public:
  RunSummary() = default;
  RunSummary(const RunSummary&) = delete;
  RunSummary& operator=(const RunSummary&) = delete;
  ~RunSummary() {
    for (const auto& line : lines_) print0("{}", line);
  }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::vector<std::string> lines_;
};

// with init_process_group(): ...
class DistributedContext {
 public:
  explicit DistributedContext(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  DistributedContext(const DistributedContext&) = delete;
  DistributedContext& operator=(const DistributedContext&) = delete;
  ~DistributedContext() { destroy_process_group(); }

  torch::Device device() const { return world_.device; }

 private:
  World world_;
};

tasks::Loss compute_loss(const tasks::Task& task, auto& model, const tasks::Batch& batch,
                         torch::Device device) {
  const auto [input, target] = batch.to(device);
  return task.loss(model->forward(input), target);
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const auto loss = compute_loss(task, model, batch, device);
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
  for (auto& batch : loader) totals += compute_loss(task, model, batch, device).totals();
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  RunSummary summary;
  const DistributedContext context(options);
  const auto device = context.device();

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
  summary.add("best validation loss: {}", task->describe(best));
  summary.add("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
