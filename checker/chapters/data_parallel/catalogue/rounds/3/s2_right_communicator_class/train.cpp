// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

namespace du = distributed_utils;
namespace data = torch::data;

// MPI_Init and MPI_COMM_WORLD in one object. There is one in a program.
class Communicator {
 public:
  explicit Communicator(const tasks::Options& options)
      : world_(du::setup({.backend = options.backend, .device = options.device})) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return world_.rank; }
  int size() const { return world_.world_size; }
  torch::Device device() const { return world_.device; }

 private:
  const du::World world_;
};

// A model with what trains it, on the communicator's device.
class Solver {
 public:
  Solver(const Communicator& comm, const tasks::Task& task, const tasks::Options& options,
         std::size_t train_size)
      : comm_(comm),
        task_(task),
        model_(task.make_model()),
        optimizer_((model_->to(comm.device()), task.make_optimizer(model_->parameters()))),
        progress_(options, train_size),
        schedule_(task.make_schedule(*optimizer_, progress_.total_steps())) {}

  tasks::Score advance(auto& loader) {
    model_->train();
    return integrate(loader, [this](const tasks::Batch& batch) {
      optimizer_->zero_grad();
      auto loss = task_.loss(model_->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      return std::pair(loss.totals(), progress_.step(loss));
    });
  }

  tasks::Score observe(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    return integrate(loader, [this](const tasks::Batch& batch) {
      const auto loss = task_.loss(model_->forward(batch.input), batch.target);
      return std::pair(loss.totals(), true);
    });
  }

  tasks::Progress& progress() { return progress_; }
  void save(const std::filesystem::path& file) const { torch::save(model_, file); }

 private:
  tasks::Score integrate(auto& loader, auto&& step) {
    auto totals = task_.no_totals(comm_.device());
    for (auto& batch : loader) {
      const auto [part, go_on] = step(batch.to(comm_.device()));
      totals += part;
      if (!go_on) break;
    }
    return task_.score(totals);
  }

  const Communicator& comm_;
  const tasks::Task& task_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Communicator comm(options);

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

  Solver solver(comm, *task, options, *train_set.size());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !solver.progress().finished(); ++epoch) {
    const auto trained = solver.advance(*train_loader);
    const auto valid = solver.observe(*valid_loader);
    solver.progress().report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      solver.save(options.output / "model-best.pt");
    }
  }

  const auto test = solver.observe(*test_loader);
  solver.progress().report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  solver.save(options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
