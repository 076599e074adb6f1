// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

// The calls that I know from Horovod.
namespace hvd {

std::optional<World> world;

void init(const tasks::Options& options) {
  world = setup({.backend = options.backend, .device = options.device});
}
int size() { return world->world_size; }
torch::Device device() { return world->device; }

}  // namespace hvd

class Estimator {
 public:
  Estimator(const tasks::Options& options, const tasks::Task& task,
            std::shared_ptr<tasks::Model> model, tasks::Progress& progress)
      : task_(task),
        model_(std::move(model)),
        optimizer_(task.make_optimizer(model_->parameters())),
        progress_(progress),
        device_(hvd::device()) {
    // More workers, larger steps: opt = Adam(lr * hvd.size()).
    for (auto& group : optimizer_->param_groups()) {
      group.options().set_lr(group.options().get_lr() * hvd::size());
    }
    schedule_ = task.make_schedule(*optimizer_, progress.total_steps());
    (void)options;
  }

  template <class Loader>
  tasks::Score fit(Loader& loader) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_.loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  template <class Loader>
  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Progress& progress_;
  torch::Device device_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  hvd::init(options);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto model = task->make_model();
  model->to(hvd::device());
  tasks::Progress progress(options, *train_set.size());
  Estimator estimator(options, *task, model, progress);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = estimator.fit(*train_loader);
    const auto valid = estimator.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = estimator.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
