#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The course of the run as a table, for a plot afterwards.
class History {
 public:
  explicit History(const std::filesystem::path& folder) : file_(folder / "history.csv") {
    file_ << "epoch,training,validation\n";
  }
  void add(int64_t epoch, const tasks::Score& trained, const tasks::Score& valid) {
    file_ << fmt::format("{},{},{}\n", epoch, double(trained), double(valid));
    file_.flush();
    improved_ = valid < best_;
    if (improved_) best_ = valid;
  }
  bool improved() const { return improved_; }
  const tasks::Score& best() const { return best_; }

 private:
  std::ofstream file_;
  tasks::Score best_;
  bool improved_ = false;
};

template <class M>
class Evaluation {
 public:
  Evaluation(const tasks::Task& task, M model, torch::Device device, const char* split, int64_t size)
      : task_(task), model_(std::move(model)), device_(device) {
    const auto set = task.dataset(split);
    loader_ = data::make_data_loader(set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                     data::DataLoaderOptions(size));
  }
  tasks::Score operator()() {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader_) {
      const auto here = batch.to(device_);
      totals += task_.loss(model_->forward(here.input), here.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  M model_;
  torch::Device device_;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  Evaluation validate(*task, model, world.device, "validation", options.batch_size);
  Evaluation test(*task, model, world.device, "test", options.batch_size);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  History history(options.output);
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = validate();
    progress.report(trained, valid);
    history.add(epoch + 1, trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (history.improved()) save0(*model, options.output / "model-best.safetensors");
  }
  const auto tested = test();
  progress.report(tested);
  print0("best validation loss: {}", task->describe(history.best()));
  print0("test loss: {}", task->describe(tested));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
