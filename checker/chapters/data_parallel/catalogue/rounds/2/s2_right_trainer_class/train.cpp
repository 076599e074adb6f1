#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// One rank's training run. Members in the order in which they come to life.
class Trainer {
  using TrainLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::RandomSampler>;
  using TestLoader = data::StatelessDataLoader<tasks::Dataset, data::samplers::SequentialSampler>;

 public:
  explicit Trainer(const tasks::Options& options)
      : options_(options),
        world_(setup({.backend = options.backend, .device = options.device})),
        task_(tasks::make_task(options)),
        train_(shuffled("train")),
        valid_(in_order("validation")),
        test_(in_order("test")),
        model_(task_->make_model()),
        progress_(options, *task_->dataset("train").size()) {
    model_->to(world_.device);
    optimizer_ = task_->make_optimizer(model_->parameters());
    schedule_ = task_->make_schedule(*optimizer_, progress_.total_steps());
  }

  void run() {
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      const auto trained = learn();
      const auto valid = measure(*valid_);
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      if (!(valid < best_)) continue;
      best_ = valid;
      keep("best");
    }
    const auto test = measure(*test_);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(test));
    keep("final");
  }

 private:
  std::unique_ptr<TrainLoader> shuffled(std::string_view split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set, data::samplers::RandomSampler(*set.size()),
                                  data::DataLoaderOptions(options_.batch_size).drop_last(true));
  }
  std::unique_ptr<TestLoader> in_order(std::string_view split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set, data::samplers::SequentialSampler(*set.size()),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Loss forward(const tasks::Batch& batch) {
    const auto here = batch.to(world_.device);
    return task_->loss(model_->forward(here.input), here.target);
  }

  tasks::Score learn() {
    model_->train();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : *train_) {
      optimizer_->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_->score(totals);
  }

  tasks::Score measure(TestLoader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) totals += forward(batch).totals();
    return task_->score(totals);
  }

  void keep(std::string_view which) const {
    torch::save(model_, options_.output / fmt::format("model-{}.pt", which));
  }

  const tasks::Options& options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  std::unique_ptr<TrainLoader> train_;
  std::unique_ptr<TestLoader> valid_, test_;
  std::shared_ptr<tasks::Model> model_;
  tasks::Progress progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  Trainer(options).run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
