// Step 06: One rank speaks, one rank writes.
// An Accelerator that joins the group when it is made and leaves it when it goes; everything that
// uses the group lives inside of it.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

class Accelerator {
 public:
  explicit Accelerator(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;
  ~Accelerator() { destroy_process_group(); }

  torch::Device device() const { return world_.device; }
  bool is_main_process() const { return world_.rank == 0; }

  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    if (is_main_process()) fmt::println(format, std::forward<Args>(args)...);
  }
  torch::Tensor reduce(const torch::Tensor& totals) const {
    auto sum = totals.clone();
    all_reduce(sum, ReduceOp::SUM);
    return sum;
  }
  auto prepare_model(const std::shared_ptr<tasks::Model>& module) const {
    module->to(world_.device);
    return DistributedDataParallel(module);
  }
  static auto prepare_loader(const tasks::Dataset& set, const DistributedSampler& sampler,
                             const data::DataLoaderOptions& options) {
    return data::make_data_loader(set, sampler, options);
  }

 private:
  World world_;
};

// One epoch over a loader. With an optimizer it trains, without one it evaluates.
struct Pass {
  const tasks::Task& task;
  const Accelerator& accelerator;
  tasks::Progress& progress;

  tasks::Score run(auto& model, auto& loader, torch::optim::Optimizer* optimizer = nullptr,
                   tasks::Schedule* schedule = nullptr) const {
    const torch::AutoGradMode gradients(optimizer != nullptr);
    model->train(optimizer != nullptr);
    auto totals = task.no_totals(accelerator.device());
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(accelerator.device());
      const auto loss = task.loss(model->forward(input), target);
      totals += loss.totals();
      if (!optimizer) continue;
      optimizer->zero_grad();
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
    }
    return task.score(accelerator.reduce(totals));
  }
};

void run(const tasks::Options& options, const Accelerator& accelerator) {
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto whole = data::DataLoaderOptions(options.batch_size);
  const auto full_only = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto train_loader = accelerator.prepare_loader(train_set, train_sampler, full_only);
  const auto valid_loader = accelerator.prepare_loader(valid_set, valid_sampler, whole);
  const auto test_loader = accelerator.prepare_loader(test_set, test_sampler, whole);

  const auto model = accelerator.prepare_model(task->make_model());
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Pass pass{*task, accelerator, progress};

  std::optional<tasks::Score> best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    train_sampler.set_epoch(epoch);
    const auto trained = pass.run(model, *train_loader, optimizer.get(), schedule.get());
    const auto valid = pass.run(model, *valid_loader);
    progress.report(trained, valid);
    accelerator.print("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                      options.epochs, task->format(trained), task->format(valid));
    if (valid < best.value_or(tasks::Score())) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = pass.run(model, *test_loader);
  progress.report(test);
  accelerator.print("best validation loss: {}", task->describe(best.value_or(tasks::Score())));
  accelerator.print("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Accelerator accelerator(options);
  run(options, accelerator);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
