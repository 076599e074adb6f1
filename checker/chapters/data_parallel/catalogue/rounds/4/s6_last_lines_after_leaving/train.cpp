// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Collects lines and prints them together. What is left is printed at the end of its life, however
// the program leaves its scope.
class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { flush(); }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  void flush() {
    for (const auto& line : lines_) print0("{}", line);
    lines_.clear();
  }

 private:
  std::vector<std::string> lines_;
};

struct Passes {
  const tasks::Task& task;
  torch::Device device;

  tasks::Score total(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score train(const auto& model, auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
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
    return total(totals);
  }

  tasks::Score evaluate(const auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return total(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  Log log;

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
  const Passes passes{*task, device};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = passes.train(model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = passes.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    log.line("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
             task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
    log.flush();
  }

  const auto test = passes.evaluate(model, *test_loader);
  progress.report(test);
  log.line("best validation loss: {}", task->describe(best));
  log.line("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
