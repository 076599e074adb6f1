// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

// Knows the command line.
class Program {
 public:
  Program(int argc, char** argv) : options_(tasks::parse_options(argc, argv)) {
    tasks::apply(options_);
  }
  virtual ~Program() = default;
  virtual void run() = 0;

 protected:
  const tasks::Options options_;
};

// Knows the other ranks.
class DistributedProgram : public Program {
 public:
  DistributedProgram(int argc, char** argv)
      : Program(argc, argv),
        world_(setup({.backend = options_.backend, .device = options_.device})) {}

 protected:
  const World world_;
};

// Knows how to train and evaluate, but not what.
class TrainingProgram : public DistributedProgram {
 public:
  TrainingProgram(int argc, char** argv)
      : DistributedProgram(argc, argv), task_(tasks::make_task(options_)) {}

  void run() final {
    begin();
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_->finished(); ++epoch) {
      const auto trained = train();
      const auto valid = validate();
      progress_->report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                   options_.epochs, task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save("model-best.pt");
      }
    }
    const auto tested = test();
    progress_->report(tested);
    fmt::println("best validation loss: {}", task_->describe(best));
    fmt::println("test loss: {}", task_->describe(tested));
    save("model-final.pt");
  }

 protected:
  virtual void begin() = 0;
  virtual tasks::Score train() = 0;
  virtual tasks::Score validate() = 0;
  virtual tasks::Score test() = 0;
  virtual void save(const char* name) = 0;

  std::shared_ptr<tasks::Task> task_;
  std::unique_ptr<tasks::Progress> progress_;
};

class ModelProgram final : public TrainingProgram {
 public:
  using TrainingProgram::TrainingProgram;

 private:
  using TrainLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::RandomSampler>;
  using EvalLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::SequentialSampler>;

  void begin() override {
    const auto batches = data::DataLoaderOptions(options_.batch_size);
    const auto train_set = task_->dataset("train");
    const auto valid_set = task_->dataset("validation");
    const auto test_set = task_->dataset("test");
    train_loader_ = data::make_data_loader(
        train_set, data::samplers::RandomSampler(*train_set.size()),
        data::DataLoaderOptions(options_.batch_size).drop_last(true));
    valid_loader_ = data::make_data_loader(
        valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
    test_loader_ = data::make_data_loader(
        test_set, data::samplers::SequentialSampler(*test_set.size()), batches);
    model_ = task_->make_model();
    model_->to(world_.device);
    optimizer_ = task_->make_optimizer(model_->parameters());
    progress_ = std::make_unique<tasks::Progress>(options_, *train_set.size());
    schedule_ = task_->make_schedule(*optimizer_, progress_->total_steps());
  }

  tasks::Loss loss(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world_.device);
    return task_->loss(model_->forward(input), target);
  }

  tasks::Score train() override {
    model_->train();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : *train_loader_) {
      optimizer_->zero_grad();
      const auto value = loss(batch);
      value.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += value.totals();
      if (!progress_->step(value)) break;
    }
    return task_->score(totals);
  }

  tasks::Score evaluate(EvalLoader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) totals += loss(batch).totals();
    return task_->score(totals);
  }
  tasks::Score validate() override { return evaluate(*valid_loader_); }
  tasks::Score test() override { return evaluate(*test_loader_); }
  void save(const char* name) override { torch::save(model_, options_.output / name); }

  std::unique_ptr<TrainLoader> train_loader_;
  std::unique_ptr<EvalLoader> valid_loader_, test_loader_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  ModelProgram(argc, argv).run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
