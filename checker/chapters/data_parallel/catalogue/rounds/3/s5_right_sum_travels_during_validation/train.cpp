// Step 05: the training totals are on their way while the validation runs.

#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A sum over all ranks that is under way. Nobody reads it before it has come.
class FutureScore {
 public:
  FutureScore(const tasks::Task& task, torch::Tensor totals)
      : task_(task), totals_(std::move(totals)), work_(all_reduce_async(totals_)) {}

  tasks::Score get() && {
    work_.wait();
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
  Work work_;
};

template <class Model>
class Session {
 public:
  Session(const tasks::Task& task, const tasks::Options& options, const Model& model,
          torch::Device device, size_t train_size)
      : task_(task),
        model_(model),
        device_(device),
        optimizer_(task.make_optimizer(model->parameters())),
        progress_(options, train_size),
        schedule_(task.make_schedule(*optimizer_, progress_.total_steps())) {}

  FutureScore train(auto& loader) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      optimizer_->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return {task_, totals};
  }

  FutureScore evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) totals += forward(batch).totals();
    return {task_, totals};
  }

  tasks::Progress& progress() { return progress_; }

 private:
  tasks::Loss forward(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }

  const tasks::Task& task_;
  const Model& model_;
  torch::Device device_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  Session session(*task, options, model, device, *train_set.size());
  auto& progress = session.progress();

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    auto training = session.train(*train_loader);
    const auto valid = session.evaluate(*valid_loader).get();
    const auto trained = std::move(training).get();
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = session.evaluate(*test_loader).get();
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
