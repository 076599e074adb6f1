// Step 05: The reported loss is everybody's.
// With torchvision's MetricLogger and SmoothedValue (references/detection/utils.py), in C++.

#include <fmt/format.h>
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A sum and how many values are in it.
struct SmoothedValue {
  double total = 0;
  double count = 0;

  void update(double value, double n) {
    total += value;
    count += n;
  }

  void synchronize_between_processes(torch::Device device) {
    const auto both = torch::tensor({total, count}, torch::kFloat64).to(device);
    all_reduce(both, ReduceOp::SUM);
    total = both[0].item<double>();
    count = both[1].item<double>();
  }
};

// One meter for the loss and one for each metric of the task.
class MetricLogger {
 public:
  MetricLogger(const tasks::Task& task, torch::Device device) : task_(task), device_(device) {
    names_.push_back("loss");
    for (const auto& name : task.metric_names()) names_.push_back(name);
  }

  void update(const tasks::Loss& loss) {
    const auto rows = loss.totals().cpu().reshape({-1, 2});
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto row = rows[static_cast<int64_t>(i)];
      meters_[names_[i]].update(row[0].item<double>(), row[1].item<double>());
    }
  }

  void synchronize_between_processes() {
    for (const auto& name : names_) meters_[name];  // also where a rank had no batch
    for (auto [name, meter] : meters_) {
      meter.synchronize_between_processes(device_);
    }
  }

  tasks::Score score() {
    std::vector<double> values;
    for (const auto& name : names_) {
      values.push_back(meters_[name].total);
      values.push_back(meters_[name].count);
    }
    return task_.score(
        torch::tensor(values, torch::kFloat64).to(device_).view_as(task_.no_totals(device_)));
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  std::vector<std::string> names_;
  std::map<std::string, SmoothedValue> meters_;
};

tasks::Score train_one_epoch(const tasks::Task& task, auto& model, auto& optimizer, auto& loader,
                             tasks::Schedule& schedule, torch::Device device,
                             tasks::Progress& progress) {
  model->train();
  MetricLogger metric_logger(task, device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    metric_logger.update(loss);
    if (!progress.step(loss)) break;
  }
  metric_logger.synchronize_between_processes();
  return metric_logger.score();
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  MetricLogger metric_logger(task, device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    metric_logger.update(task.loss(model->forward(input), target));
  }
  metric_logger.synchronize_between_processes();
  return metric_logger.score();
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
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train_one_epoch(*task, model, *optimizer, *train_loader, *schedule, device, progress);
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
