// Step 04 without the wrapper: a GradientAverager of our own, with its list made once.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Keeps the replicas of a module alike: weights at the start, gradients in every step.
class GradientAverager {
 public:
  explicit GradientAverager(const torch::nn::Module& module) : parameters_(module.parameters()) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters_) broadcast(parameter.detach(), 0);
    for (auto& buffer : module.buffers()) broadcast(buffer, 0);
  }

  /// Between backward() and the optimizer's step.
  void average() {
    if (gradients_.empty()) collect();
    for (const auto& gradient : gradients_) all_reduce(gradient, ReduceOp::AVG);
  }

 private:
  // Walking through the whole model in every step would be slow.
  void collect() {
    for (const auto& parameter : parameters_) {
      if (parameter.grad().defined()) gradients_.push_back(parameter.grad());
    }
  }

  std::vector<torch::Tensor> parameters_, gradients_;
};

struct Fit {
  tasks::Options options;
  World world;
  std::shared_ptr<tasks::Task> task = tasks::make_task(options);
  tasks::Dataset train_set = task->dataset("train");
  tasks::Dataset valid_set = task->dataset("validation");
  tasks::Dataset test_set = task->dataset("test");
  DistributedSampler order{*train_set.size(),
                           {.shuffle = true, .seed = options.seed, .drop_last = true}};
  std::shared_ptr<tasks::Model> model = on_device();
  GradientAverager averager{*model};
  std::unique_ptr<torch::optim::Optimizer> optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress{options, *train_set.size()};
  std::unique_ptr<tasks::Schedule> schedule =
      task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best = {};

  std::shared_ptr<tasks::Model> on_device() const {
    auto made = task->make_model();
    made->to(world.device);
    return made;
  }

  tasks::Score train_epoch(int64_t epoch) {
    order.set_epoch(epoch);
    const auto loader = data::make_data_loader(
        train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      averager.average();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  }

  tasks::Score score_of(const tasks::Dataset& set) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  }

  void run() {
    for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
      const auto trained = train_epoch(epoch);
      const auto valid = score_of(valid_set);
      progress.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                   task->format(trained), task->format(valid));
      if (!(valid < best)) continue;
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
    const auto test = score_of(test_set);
    progress.report(test);
    fmt::println("best validation loss: {}", task->describe(best));
    fmt::println("test loss: {}", task->describe(test));
    torch::save(model, options.output / "model-final.pt");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Fit fit{.options = options, .world = world};
  fit.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
