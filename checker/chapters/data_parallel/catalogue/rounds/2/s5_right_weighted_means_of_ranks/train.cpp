// Everybody gathers the means of all ranks and weights them by their targets.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The three splits and what deals them out.
struct Data {
  tasks::Dataset train, valid, test;
  DistributedSampler train_sampler, valid_sampler, test_sampler;

  Data(const tasks::Task& task, const tasks::Options& options)
      : train(task.dataset("train")),
        valid(task.dataset("validation")),
        test(task.dataset("test")),
        train_sampler(*train.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        valid_sampler(*valid.size(), {.shuffle = false, .pad = false}),
        test_sampler(*test.size(), {.shuffle = false, .pad = false}) {}
};

std::shared_ptr<tasks::Model> on(std::shared_ptr<tasks::Model> module, torch::Device device) {
  module->to(device);
  return module;
}

class Trainer {
 public:
  Trainer(const tasks::Options& options, const World& world)
      : options_(options),
        world_(world),
        task_(tasks::make_task(options)),
        data_(*task_, options),
        model_(DistributedDataParallel(on(task_->make_model(), world_.device))),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *data_.train.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void run() {
    const auto size = options_.batch_size;
    auto train_loader =
        data::make_data_loader(data_.train, data_.train_sampler,
                               data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto valid_loader = data::make_data_loader(data_.valid, data_.valid_sampler,
                                               data::DataLoaderOptions(size));
    auto test_loader =
        data::make_data_loader(data_.test, data_.test_sampler, data::DataLoaderOptions(size));
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      data_.train_sampler.set_epoch(epoch);
      const auto trained = train(*train_loader);
      const auto valid = evaluate(*valid_loader);
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                   options_.epochs, task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
    const auto test = evaluate(*test_loader);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world_.device);
    return task_->loss(model_->forward(input), target);
  }

  tasks::Loss step(const tasks::Batch& batch) {
    optimizer_->zero_grad();
    const auto loss = loss_of(batch);
    loss.mean().backward();
    optimizer_->step();
    return loss;
  }

  tasks::Score train(auto& loader) {
    model_->train();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto loss = step(batch);
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return score_of(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return score_of(totals);
  }

  tasks::Score score_of(torch::Tensor totals) {
    totals = weighted(totals);
    return task_->score(totals);
  }

  // Rows of the gathered: ranks; then (sum, count) pairs, of the loss and of each metric.
  static torch::Tensor weighted(const torch::Tensor& own) {
    const auto gathered = all_gather(own).reshape({get_world_size(), -1, 2});
    const auto sums = gathered.select(2, 0);
    const auto counts = gathered.select(2, 1);
    const auto means = sums / counts.clamp_min(1);
    const auto all = counts.sum(0);
    const auto shares = counts / all.clamp_min(1);
    const auto mean = (means * shares).sum(0);
    return torch::stack({mean * all, all}, 1).reshape_as(own);
  }

  tasks::Options options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  Data data_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
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
