// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Sums that wait for the next message. Each pass leaves its totals here; send() adds all of them up
// over the ranks at once and returns their scores, in the order in which they came.
class Mailbag {
 public:
  explicit Mailbag(const tasks::Task& task) : task_(task) {}

  void put(torch::Tensor totals) { letters_.push_back(std::move(totals)); }

  std::vector<tasks::Score> send() {
    const auto letters = torch::stack(std::exchange(letters_, {}));
    all_reduce(letters, ReduceOp::SUM);
    std::vector<tasks::Score> scores;
    for (int64_t i = 0; i < letters.size(0); ++i) scores.push_back(task_.score(letters[i]));
    return scores;
  }

 private:
  const tasks::Task& task_;
  std::vector<torch::Tensor> letters_;
};

template <typename Model>
class Passes {
 public:
  Passes(const tasks::Task& task, const Model& model, torch::Device device)
      : task_(task), model_(model), device_(device) {}

  torch::Tensor train(auto& loader, torch::optim::Optimizer& optimizer,
                      tasks::Schedule& schedule, tasks::Progress& progress) const {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return totals;
  }

  torch::Tensor evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return totals;
  }

 private:
  tasks::Loss loss_of(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }

  const tasks::Task& task_;
  const Model& model_;
  torch::Device device_;
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
  const auto optimizer = task->make_optimizer(model->parameters());
  const Passes passes(*task, model, device);
  Mailbag mail(*task);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    mail.put(passes.train(*train_loader, *optimizer, *schedule, progress));
    mail.put(passes.evaluate(*valid_loader));
    const auto scores = mail.send();
    const auto& trained = scores[0];
    const auto& valid = scores[1];
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  mail.put(passes.evaluate(*test_loader));
  const auto test = mail.send().front();
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
