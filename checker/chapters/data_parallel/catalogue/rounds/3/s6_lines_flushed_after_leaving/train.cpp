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

// Collects what there is to say, so that slow terminals hold nobody up; says it when it ends.
class Journal {
 public:
  ~Journal() { flush(); }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
    if (lines_.size() >= 3) flush();
  }

 private:
  void flush() {
    for (const auto& line : lines_) print0("{}", line);
    lines_.clear();
  }
  std::vector<std::string> lines_;
};

struct Sets {
  tasks::Dataset train, valid, test;
  DistributedSampler train_sampler, valid_sampler, test_sampler;
  Sets(const tasks::Task& task, uint64_t seed)
      : train(task.dataset("train")), valid(task.dataset("validation")), test(task.dataset("test")),
        train_sampler(*train.size(), {.shuffle = true, .seed = seed, .drop_last = true}),
        valid_sampler(*valid.size(), {.shuffle = false, .pad = false}),
        test_sampler(*test.size(), {.shuffle = false, .pad = false}) {}
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : *loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  Journal journal;
  const auto task = tasks::make_task(options);
  Sets sets(*task, options.seed);
  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *sets.train.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const auto batches = data::DataLoaderOptions(options.batch_size);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sets.train_sampler.set_epoch(epoch);
    const auto loader = data::make_data_loader(
        sets.train, sets.train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device);
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
    const auto valid =
        evaluate(*task, model, data::make_data_loader(sets.valid, sets.valid_sampler, batches), device);
    progress.report(trained, valid);
    journal.line("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test =
      evaluate(*task, model, data::make_data_loader(sets.test, sets.test_sampler, batches), device);
  progress.report(test);
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  journal.line("best validation loss: {}", task->describe(best));
  journal.line("test loss: {}", task->describe(test));
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
