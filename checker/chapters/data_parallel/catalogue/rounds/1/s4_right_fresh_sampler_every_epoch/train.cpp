// Step 04 with a DataModule that makes new loaders whenever it is asked for one.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

class DataModule {
 public:
  DataModule(std::shared_ptr<tasks::Task> task, const tasks::Options& options, const World& world)
      : task_(std::move(task)), options_(options), world_(world) {}

  size_t train_size() const { return *task_->dataset("train").size(); }

  /// The epoch is part of the seed, so that a new sampler has the order of its epoch.
  auto training(int64_t epoch) const {
    const auto set = task_->dataset("train");
    return data::make_data_loader(
        set,
        DistributedSampler(*set.size(), {.shuffle = true,
                                         .seed = options_.seed + static_cast<uint64_t>(epoch),
                                         .drop_last = true,
                                         .num_replicas = world_.world_size,
                                         .rank = world_.rank}),
        data::DataLoaderOptions(options_.batch_size).drop_last(true));
  }

  auto held_out(std::string_view split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

 private:
  std::shared_ptr<tasks::Task> task_;
  const tasks::Options& options_;
  World world_;
};

/// All that changes while training.
struct TrainingState {
  DistributedDataParallel<tasks::Model> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<tasks::Schedule> schedule;
  int64_t epoch = 0;
  tasks::Score best = {};
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, const World& world)
      : options_(options),
        device_(world.device),
        task_(tasks::make_task(options)),
        data_(task_, options, world),
        progress_(options, data_.train_size()),
        state_(begin()) {}

  void run() {
    while (state_.epoch < options_.epochs && !progress_.finished()) {
      const auto trained = train();
      const auto valid = evaluate("validation");
      progress_.report(trained, valid);
      ++state_.epoch;
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", state_.epoch,
                   options_.epochs, task_->format(trained), task_->format(valid));
      if (valid < state_.best) {
        state_.best = valid;
        save("model-best.pt");
      }
    }
    const auto test = evaluate("test");
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(state_.best));
    fmt::println("test loss: {}", task_->describe(test));
    save("model-final.pt");
  }

 private:
  TrainingState begin() {
    auto module = task_->make_model();
    module->to(device_);
    DistributedDataParallel<tasks::Model> model(module);
    auto optimizer = task_->make_optimizer(model->parameters());
    auto schedule = task_->make_schedule(*optimizer, progress_.total_steps());
    return {.model = model, .optimizer = std::move(optimizer), .schedule = std::move(schedule)};
  }

  tasks::Score train() {
    auto& [model, optimizer, schedule, epoch, best] = state_;
    model->train();
    auto totals = task_->no_totals(device_);
    const auto loader = data_.training(epoch);
    for (auto& batch : *loader) {
      const auto on_device = batch.to(device_);
      model->zero_grad();
      const auto loss = task_->loss(model->forward(on_device.input), on_device.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_->score(totals);
  }

  tasks::Score evaluate(std::string_view split) {
    const torch::NoGradGuard no_grad;
    state_.model->eval();
    auto totals = task_->no_totals(device_);
    const auto loader = data_.held_out(split);
    for (auto& batch : *loader) {
      const auto on_device = batch.to(device_);
      totals += task_->loss(state_.model->forward(on_device.input), on_device.target).totals();
    }
    return task_->score(totals);
  }

  void save(const char* name) const { torch::save(state_.model, options_.output / name); }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  DataModule data_;
  tasks::Progress progress_;
  TrainingState state_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Trainer(options, world).run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
