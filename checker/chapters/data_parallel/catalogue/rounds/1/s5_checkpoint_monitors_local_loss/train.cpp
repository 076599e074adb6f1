// Step 05: The reported loss is everybody's.
// A Trainer with a dictionary of metrics, and a ModelCheckpoint that monitors one of them.

#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
using Net = DistributedDataParallel<tasks::Model>;
using MetricDict = std::map<std::string, tasks::Score>;

// Keeps the model with the least monitored loss.
class ModelCheckpoint {
 public:
  ModelCheckpoint(std::filesystem::path path, std::string monitor)
      : path_(std::move(path)), monitor_(std::move(monitor)) {}

  void on_validation_end(const Net& model, const MetricDict& metrics) {
    const auto& current = metrics.at(monitor_);
    if (!(current < best_)) return;
    best_ = current;
    torch::save(model, path_);
  }
  const tasks::Score& best_model_score() const { return best_; }

 private:
  std::filesystem::path path_;
  std::string monitor_;
  tasks::Score best_;
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, const tasks::Task& task, torch::Device device,
          ModelCheckpoint& checkpoint)
      : options_(options), task_(task), device_(device), checkpoint_(checkpoint) {}

  void fit(Net model, Loader& train, Loader& valid, DistributedSampler& sampler,
           torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
           tasks::Progress& progress) {
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task_.no_totals(device_);
      for (auto& batch : train) {
        const auto [input, target] = batch.to(device_);
        optimizer.zero_grad();
        const auto loss = task_.loss(model->forward(input), target);
        loss.mean().backward();
        optimizer.step();
        schedule.step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      log("train_loss", totals);
      validate(model, valid, "val_loss");
      const auto& trained = metrics_.at("train_loss_epoch");
      const auto& validated = metrics_.at("val_loss_epoch");
      progress.report(trained, validated);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_.format(trained), task_.format(validated));
      checkpoint_.on_validation_end(model, metrics_);
    }
  }

  tasks::Score test(Net model, Loader& loader) {
    validate(model, loader, "test_loss");
    return metrics_.at("test_loss_epoch");
  }

 private:
  void validate(Net& model, Loader& loader, const std::string& name) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model->forward(input), target).totals();
    }
    log(name, totals);
  }

  // Under the plain name what this process saw, under NAME_epoch the mean of all of them.
  void log(const std::string& name, const torch::Tensor& totals) {
    metrics_[name] = task_.score(totals);
    const auto reduced = totals.clone();
    all_reduce(reduced, ReduceOp::SUM);
    metrics_[name + "_epoch"] = task_.score(reduced);
  }

  const tasks::Options& options_;
  const tasks::Task& task_;
  torch::Device device_;
  ModelCheckpoint& checkpoint_;
  MetricDict metrics_;
};

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

  ModelCheckpoint checkpoint(options.output / "model-best.pt", "val_loss");
  Trainer trainer(options, *task, device, checkpoint);
  trainer.fit(model, *train_loader, *valid_loader, train_sampler, *optimizer, *schedule, progress);

  const auto test = trainer.test(model, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(checkpoint.best_model_score()));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
