// Step 04, organized as three classes: DataModule, Evaluator and Trainer.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
using Replica = DistributedDataParallel<tasks::Model>;

class DataModule {
 public:
  DataModule(const tasks::Task& task, const tasks::Options& options)
      : train_set_(task.dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        train_(data::make_data_loader(train_set_, sampler_,
                                      data::DataLoaderOptions(options.batch_size).drop_last(true))),
        validation_(held_out(task.dataset("validation"), options)),
        test_(held_out(task.dataset("test"), options)) {}

  Loader& epoch(int64_t number) {
    sampler_.set_epoch(number);
    return *train_;
  }
  Loader& validation() { return *validation_; }
  Loader& test() { return *test_; }
  size_t train_size() const { return *train_set_.size(); }

 private:
  static std::unique_ptr<Loader> held_out(const tasks::Dataset& set,
                                          const tasks::Options& options) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  }

  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> train_, validation_, test_;
};

/// Scores a split. Ranks have different numbers of batches here, so nothing may be communicated.
class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const Replica& model, torch::Device device)
      : task_(task), model_(model), device_(device), quiet_(model->no_sync()) {}

  tasks::Score operator()(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto there = batch.to(device_);
      totals += task_.loss(model_->forward(there.input), there.target).totals();
    }
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  Replica model_;
  torch::Device device_;
  DistributedDataParallelBase::NoSync quiet_;
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        data_(*task_, options),
        model_(replicate(*task_, device)),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, data_.train_size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())),
        evaluate_(*task_, model_, device) {}

  void fit() {
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      const auto trained = pass(data_.epoch(epoch));
      const auto valid = evaluate_(data_.validation());
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      if (valid < best_) {
        best_ = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
  }

  void finish() {
    const auto test = evaluate_(data_.test());
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  static Replica replicate(const tasks::Task& task, torch::Device device) {
    auto module = task.make_model();
    module->to(device);
    return Replica(module);
  }

  tasks::Score pass(Loader& loader) {
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto there = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(there.input), there.target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_->score(totals);
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  DataModule data_;
  Replica model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  Evaluator evaluate_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Trainer trainer(options, world.device);
  trainer.fit();
  trainer.finish();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
