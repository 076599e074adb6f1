// Step 05 where the training totals travel while the validation split is evaluated.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Totals on their way over all ranks. Every rank makes and reads these in the same order.
class TravellingTotals {
 public:
  TravellingTotals(const tasks::Task& task, torch::Tensor totals)
      : task_(task), totals_(std::move(totals)), work_(all_reduce_async(totals_)) {}

  tasks::Score arrive() {
    work_.wait();
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  Work work_;
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        model_(wrapped()),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void run() {
    auto train_loader = data::make_data_loader(
        train_set_, sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto valid_loader = held_out("validation");
    auto test_loader = held_out("test");
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      sampler_.set_epoch(epoch);
      auto training = train(*train_loader);
      auto validation = evaluate(*valid_loader);
      const auto trained = training.arrive();
      const auto valid = validation.arrive();
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      if (valid < best_) {
        best_ = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
    const auto test = evaluate(*test_loader).arrive();
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  DistributedDataParallel<tasks::Model> wrapped() const {
    auto module = task_->make_model();
    module->to(device_);
    return DistributedDataParallel<tasks::Model>(module);
  }

  auto held_out(const char* split) const -> std::unique_ptr<
      data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  TravellingTotals train(auto& loader) {
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return {*task_, totals};
  }

  TravellingTotals evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    return {*task_, totals};
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Trainer(options, world.device).run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
