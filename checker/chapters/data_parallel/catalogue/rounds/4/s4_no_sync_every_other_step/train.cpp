// Step 04: the ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// One of the ranks' training loops, with what it needs.
template <typename Model>
class Loop {
 public:
  Loop(const tasks::Task& task, Model model, torch::optim::Optimizer& optimizer,
       tasks::Schedule& schedule, torch::Device device)
      : task_(task), model_(model), optimizer_(optimizer), schedule_(schedule), device_(device) {}

  tasks::Score run(auto& loader, tasks::Progress& progress) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto loss = step(batch.to(device_));
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task_.score(totals);
  }

 private:
  // Talking to the others takes time, so gradients travel in every second step only.
  static constexpr int64_t talk_every = 2;

  tasks::Loss backward(const tasks::Batch& batch) {
    const auto loss = task_.loss(model_->forward(batch.input), batch.target);
    loss.mean().backward();
    return loss;
  }

  tasks::Loss step(const tasks::Batch& batch) {
    optimizer_.zero_grad();
    const auto loss = [&] {
      if (++steps_ % talk_every == 0) return backward(batch);
      const auto quiet = model_->no_sync();
      return backward(batch);
    }();
    optimizer_.step();
    schedule_.step();
    return loss;
  }

  const tasks::Task& task_;
  Model model_;
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  torch::Device device_;
  int64_t steps_ = 0;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

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

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Loop<DistributedDataParallel<tasks::Model>> loop(*task, model, *optimizer, *schedule, device);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto start = std::chrono::steady_clock::now();
    const auto trained = loop.run(*train_loader, progress);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (rank == 0) fmt::print(stderr, "trained for {:.2f} s\n", passed.count());
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
