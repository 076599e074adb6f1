// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdlib>
#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// setup() picks the GPU by the process's number. On the second node the GPUs are counted from 0
// again, so the number must be the one within the node, as with our MPI codes' pinning scripts.
void pin_to_node() {
  if (const char* here = std::getenv("LOCAL_RANK")) setenv("RANK", here, /*overwrite=*/1);
}

class Trainer {
 public:
  explicit Trainer(const tasks::Options& options)
      : options_(options),
        world_(join(options)),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        valid_set_(task_->dataset("validation")),
        test_set_(task_->dataset("test")) {}

  void run() {
    const auto whole = data::DataLoaderOptions(options_.batch_size).drop_last(true);
    const auto rest = data::DataLoaderOptions(options_.batch_size);
    auto train_loader = data::make_data_loader(
        train_set_, data::samplers::RandomSampler(*train_set_.size()), whole);
    auto valid_loader = data::make_data_loader(
        valid_set_, data::samplers::SequentialSampler(*valid_set_.size()), rest);
    auto test_loader = data::make_data_loader(
        test_set_, data::samplers::SequentialSampler(*test_set_.size()), rest);

    model_ = task_->make_model();
    model_->to(world_.device);
    optimizer_ = task_->make_optimizer(model_->parameters());
    progress_ = std::make_unique<tasks::Progress>(options_, *train_set_.size());
    schedule_ = task_->make_schedule(*optimizer_, progress_->total_steps());

    for (int64_t epoch = 0; epoch < options_.epochs && !progress_->finished(); ++epoch) {
      const auto trained = train(*train_loader);
      const auto valid = evaluate(*valid_loader);
      progress_->report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      keep_if_better(valid);
    }

    const auto test = evaluate(*test_loader);
    progress_->report(test);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  static World join(const tasks::Options& options) {
    pin_to_node();
    return setup({.backend = options.backend, .device = options.device});
  }

  tasks::Score train(auto& loader) {
    model_->train();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_->step(loss)) break;
    }
    return task_->score(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    return task_->score(totals);
  }

  void keep_if_better(const tasks::Score& valid) {
    if (!(valid < best_)) return;
    best_ = valid;
    torch::save(model_, options_.output / "model-best.pt");
  }

  tasks::Options options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_, valid_set_, test_set_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Progress> progress_;
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
