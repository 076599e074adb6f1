// Step 05: The reported loss is everybody's.
// AverageMeters in a dictionary, as in PyTorch's ImageNet example.

#include <fmt/format.h>
#include <torch/torch.h>

#include <map>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Sums and counts, in one tensor. Copies of a tensor share its values, so copies of a meter count
// together.
class AverageMeter {
 public:
  explicit AverageMeter(torch::Tensor zeros) : values_(std::move(zeros)) {}
  void update(const tasks::Loss& loss) { values_ += loss.totals(); }
  void all_reduce_values() { all_reduce(values_, ReduceOp::SUM); }
  void reset() { values_.zero_(); }
  tasks::Score average(const tasks::Task& task) const { return task.score(values_); }

 private:
  torch::Tensor values_;
};

// The meters of a run by name.
class MeterGroup {
 public:
  MeterGroup(const tasks::Task& task, torch::Device device) : task_(task), device_(device) {}

  // A meter of this name, back at zero.
  AverageMeter fresh(const std::string& name) {
    auto [place, is_new] = meters_.try_emplace(name, task_.no_totals(device_));
    place->second.reset();
    return place->second;
  }
  tasks::Score operator[](const std::string& name) const {
    return meters_.at(name).average(task_);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  std::map<std::string, AverageMeter> meters_;
};

void train_epoch(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                 tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress,
                 MeterGroup& meters) {
  model->train();
  auto meter = meters.fresh("train");
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    meter.update(loss);
    if (!progress.step(loss)) break;
  }
  meter.all_reduce_values();
}

void evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device,
              const std::string& split, MeterGroup& meters) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto meter = meters.fresh(split);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    meter.update(task.loss(model->forward(input), target));
  }
  meter.all_reduce_values();
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
  MeterGroup meters(*task, device);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    train_epoch(*task, model, *train_loader, *optimizer, *schedule, device, progress, meters);
    evaluate(*task, model, *valid_loader, device, "validation", meters);
    progress.report(meters["train"], meters["validation"]);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(meters["train"]), task->format(meters["validation"]));
    if (meters["validation"] < best) {
      best = meters["validation"];
      torch::save(model, options.output / "model-best.pt");
    }
  }

  evaluate(*task, model, *test_loader, device, "test", meters);
  progress.report(meters["test"]);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(meters["test"]));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
