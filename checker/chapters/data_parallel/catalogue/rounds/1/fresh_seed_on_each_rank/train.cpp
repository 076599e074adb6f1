// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

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

// The samplers and loaders of all splits.
class Pipeline {
 public:
  Pipeline(const tasks::Task& task, const tasks::Options& options)
      : train_set(task.dataset("train")),
        valid_set(task.dataset("validation")),
        test_set(task.dataset("test")),
        train_sampler_(*train_set.size(),
                       {.shuffle = true, .seed = new_order_seed(), .drop_last = true}),
        valid_sampler_(*valid_set.size(), {.shuffle = false, .pad = false}),
        test_sampler_(*test_set.size(), {.shuffle = false, .pad = false}),
        batch_size_(options.batch_size) {}

  auto training() {
    return data::make_data_loader(train_set, train_sampler_,
                                  data::DataLoaderOptions(batch_size_).drop_last(true));
  }
  auto validation() {
    return data::make_data_loader(valid_set, valid_sampler_, data::DataLoaderOptions(batch_size_));
  }
  auto test() {
    return data::make_data_loader(test_set, test_sampler_, data::DataLoaderOptions(batch_size_));
  }

  const tasks::Dataset train_set, valid_set, test_set;

 private:
  // No run should see the order of another one.
  static uint64_t new_order_seed() { return std::random_device{}(); }

  DistributedSampler train_sampler_, valid_sampler_, test_sampler_;
  int64_t batch_size_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  Pipeline pipeline(*task, options);
  auto train_loader = pipeline.training();
  auto valid_loader = pipeline.validation();
  auto test_loader = pipeline.test();

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *pipeline.train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
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
