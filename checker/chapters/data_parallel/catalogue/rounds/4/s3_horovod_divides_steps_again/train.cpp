// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Keras-like: fit() takes the number of steps, not the end of the data, for its end.
class Fit {
 public:
  using Callback = std::function<void(int64_t epoch, const tasks::Score& score)>;

  Fit(const tasks::Task& task, torch::Device device, tasks::Progress& progress)
      : task_(task), device_(device), progress_(progress), model_(task.make_model()) {
    model_->to(device_);
    optimizer_ = task.make_optimizer(model_->parameters());
    schedule_ = task.make_schedule(*optimizer_, progress.total_steps());
  }

  void on_epoch_end(Callback callback) { callbacks_.push_back(std::move(callback)); }

  void operator()(auto& loader, int64_t epochs, int64_t steps_per_epoch) {
    for (int64_t epoch = 0; epoch < epochs && !progress_.finished(); ++epoch) {
      model_->train();
      auto totals = task_.no_totals(device_);
      auto batch = loader.begin();
      for (int64_t i = 0; i < steps_per_epoch && batch != loader.end(); ++i, ++batch) {
        const auto loss = step(*batch);
        totals += loss.totals();
        if (!progress_.step(loss)) break;
      }
      const auto score = task_.score(totals);
      for (const auto& callback : callbacks_) callback(epoch, score);
    }
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return task_.score(totals);
  }

  const std::shared_ptr<tasks::Model>& model() const { return model_; }

 private:
  tasks::Loss step(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    optimizer_->zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_->step();
    schedule_->step();
    return loss;
  }

  const tasks::Task& task_;
  torch::Device device_;
  tasks::Progress& progress_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
  std::vector<Callback> callbacks_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World hvd = setup({.backend = options.backend, .device = options.device});

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

  tasks::Progress progress(options, *train_set.size());
  Fit fit(*task, hvd.device, progress);
  tasks::Score best;
  fit.on_epoch_end([&](int64_t epoch, const tasks::Score& trained) {
    const auto valid = fit.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(fit.model(), options.output / "model-best.pt");
    }
  });

  // With Horovod: steps_per_epoch = len(x_train) // batch_size // hvd.size()
  const auto samples = static_cast<int64_t>(train_sampler.size());
  const auto steps = std::max<int64_t>(1, samples / options.batch_size / hvd.world_size);
  fit(*train_loader, options.epochs, steps);

  const auto test = fit.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(fit.model(), options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
