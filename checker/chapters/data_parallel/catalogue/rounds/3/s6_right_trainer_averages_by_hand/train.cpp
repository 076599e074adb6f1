#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A trainer that needs neither loaders nor a wrapper: it deals indices and averages gradients itself.
class Trainer {
 public:
  Trainer(const tasks::Options& options, const World& world)
      : options_(options), world_(world), task_(tasks::make_task(options)),
        train_(task_->dataset("train")), valid_(task_->dataset("validation")),
        test_(task_->dataset("test")), model_(task_->make_model()), progress_(options, *train_.size()) {
    model_->to(world.device);
    {
      const torch::NoGradGuard no_grad;
      for (auto& tensor : model_->parameters()) broadcast(tensor, 0);
      for (auto& tensor : model_->buffers()) broadcast(tensor, 0);
    }
    optimizer_ = task_->make_optimizer(model_->parameters());
    schedule_ = task_->make_schedule(*optimizer_, progress_.total_steps());
  }

  void run() {
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      if (progress_.finished()) break;
      const auto trained = learn(epoch);
      const auto valid = measure(valid_);
      progress_.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model_, options_.output / "model-best.safetensors");
      }
    }
    const auto tested = measure(test_);
    progress_.report(tested);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(tested));
    save0(*model_, options_.output / "model-final.safetensors");
  }

 private:
  std::vector<size_t> dealt(std::vector<size_t> order, bool even) const {
    const size_t ranks = world_.world_size;
    if (even) order.resize(order.size() / ranks * ranks);
    std::vector<size_t> mine;
    for (size_t i = world_.rank; i < order.size(); i += ranks) mine.push_back(order[i]);
    return mine;
  }

  void average_gradients() {
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : model_->parameters())
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    std::vector<torch::Tensor> flat;
    for (const auto& gradient : gradients) flat.push_back(gradient.reshape({-1}));
    const auto all = torch::cat(flat);
    all_reduce(all, ReduceOp::AVG);
    int64_t start = 0;
    for (auto& gradient : gradients) {
      gradient.copy_(all.narrow(0, start, gradient.numel()).view_as(gradient));
      start += gradient.numel();
    }
  }

  tasks::Score learn(int64_t epoch) {
    std::vector<size_t> order(*train_.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 generator(options_.seed * 1000 + epoch);
    std::shuffle(order.begin(), order.end(), generator);
    const auto mine = dealt(std::move(order), true);
    model_->train();
    auto totals = task_->no_totals(world_.device);
    const size_t size = options_.batch_size;
    for (size_t at = 0; at + size <= mine.size(); at += size) {
      const auto batch =
          train_.get_batch(c10::ArrayRef<size_t>(mine).slice(at, size)).to(world_.device);
      optimizer_->zero_grad();
      for (auto& buffer : model_->buffers()) broadcast(buffer, 0);
      const auto loss = task_->loss(model_->forward(batch.input), batch.target);
      loss.mean().backward();
      average_gradients();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  tasks::Score measure(tasks::Dataset& set) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    std::vector<size_t> order(*set.size());
    std::iota(order.begin(), order.end(), 0);
    const auto mine = dealt(std::move(order), false);
    auto totals = task_->no_totals(world_.device);
    for (size_t at = 0; at < mine.size(); at += options_.batch_size) {
      const auto count = std::min<size_t>(options_.batch_size, mine.size() - at);
      const auto batch =
          set.get_batch(c10::ArrayRef<size_t>(mine).slice(at, count)).to(world_.device);
      totals += task_->loss(model_->forward(batch.input), batch.target).totals();
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_, valid_, test_;
  std::shared_ptr<tasks::Model> model_;
  tasks::Progress progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Trainer(options, world).run();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
