// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

// One of the processes that MPI calls a communicator.
class Process {
 public:
  explicit Process(const tasks::Options& options)
      : options_(options),
        world_(setup({.backend = options.backend, .device = options.device})) {}
  virtual ~Process() = default;

 protected:
  const tasks::Options& options_;
  const World world_;
};

// A process that computes.
class Worker : public Process {
 public:
  Worker(const tasks::Options& options, const tasks::Task& task)
      : Process(options), task_(task), model_(task.make_model()) {
    model_->to(device());
  }

 protected:
  torch::Device device() const { return world_.device; }

  tasks::Loss forward(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device());
    return task_.loss(model_->forward(input), target);
  }

  const tasks::Task& task_;
  const std::shared_ptr<tasks::Model> model_;
};

// A process that tells what it found, and keeps the models.
class Reporter : public Process {
 public:
  using Process::Process;

 protected:
  void tell(int64_t epoch, const std::string& trained, const std::string& valid) const {
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                 trained, valid);
  }
  void keep(const std::shared_ptr<tasks::Model>& model, const char* name) const {
    torch::save(model, options_.output / name);
  }
};

class Trainer final : public Worker, public Reporter {
 public:
  Trainer(const tasks::Options& options, const tasks::Task& task, size_t train_size)
      : Worker(options, task),
        Reporter(options),
        progress_(options, train_size),
        optimizer_(task.make_optimizer(model_->parameters())),
        schedule_(task.make_schedule(*optimizer_, progress_.total_steps())) {}

  void run(int64_t epochs, auto& train_loader, auto& valid_loader, auto& test_loader) {
    tasks::Score best;
    for (int64_t epoch = 0; epoch < epochs && !progress_.finished(); ++epoch) {
      const auto trained = train(train_loader);
      const auto valid = evaluate(valid_loader);
      progress_.report(trained, valid);
      tell(epoch, task_.format(trained), task_.format(valid));
      if (valid < best) {
        best = valid;
        keep(model_, "model-best.pt");
      }
    }
    const auto test = evaluate(test_loader);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_.describe(best));
    fmt::println("test loss: {}", task_.describe(test));
    keep(model_, "model-final.pt");
  }

 private:
  tasks::Score train(auto& loader) {
    model_->train();
    auto totals = task_.no_totals(device());
    for (auto& batch : loader) {
      optimizer_->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device());
    for (auto& batch : loader) totals += forward(batch).totals();
    return task_.score(totals);
  }

  tasks::Progress progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

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

  Trainer trainer(options, *task, *train_set.size());
  trainer.run(options.epochs, *train_loader, *valid_loader, *test_loader);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
