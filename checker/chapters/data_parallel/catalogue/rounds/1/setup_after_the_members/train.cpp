// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

class Trainer {
 public:
  explicit Trainer(const tasks::Options& options)
      : options_(options),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        valid_set_(task_->dataset("validation")),
        test_set_(task_->dataset("test")),
        train_loader_(data::make_data_loader(
            train_set_, data::samplers::RandomSampler(*train_set_.size()),
            data::DataLoaderOptions(options.batch_size).drop_last(true))),
        valid_loader_(data::make_data_loader(
            valid_set_, data::samplers::SequentialSampler(*valid_set_.size()),
            data::DataLoaderOptions(options.batch_size))),
        test_loader_(data::make_data_loader(
            test_set_, data::samplers::SequentialSampler(*test_set_.size()),
            data::DataLoaderOptions(options.batch_size))),
        model_(task_->make_model()),
        progress_(options, *train_set_.size()) {}

  void run() {
    device_ = setup({.backend = options_.backend, .device = options_.device}).device;
    model_->to(device_);
    optimizer_ = task_->make_optimizer(model_->parameters());
    schedule_ = task_->make_schedule(*optimizer_, progress_.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      const auto trained = train();
      const auto valid = evaluate(*valid_loader_);
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
    const auto test = evaluate(*test_loader_);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  using TrainLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::RandomSampler>;
  using EvalLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::SequentialSampler>;

  tasks::Score train() {
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *train_loader_) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_->score(totals);
  }

  tasks::Score evaluate(EvalLoader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    return task_->score(totals);
  }

  const tasks::Options& options_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_, valid_set_, test_set_;
  std::unique_ptr<TrainLoader> train_loader_;
  std::unique_ptr<EvalLoader> valid_loader_, test_loader_;
  std::shared_ptr<tasks::Model> model_;
  tasks::Progress progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
  torch::Device device_ = torch::kCPU;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  Trainer trainer(options);
  trainer.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
