#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// In the group from here to the end of its life.
struct Membership {
  World world;
  explicit Membership(const tasks::Options& options)
      : world(setup({.backend = options.backend, .device = options.device})) {}
  ~Membership() { destroy_process_group(); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
};

// A split whose batches are fetched and moved to the device once.
class Kept {
 public:
  Kept(tasks::Dataset set, int64_t batch_size, torch::Device device) {
    const auto loader =
        data::make_data_loader(set, data::samplers::SequentialSampler(*set.size()),
                               data::DataLoaderOptions(static_cast<size_t>(batch_size)));
    for (auto& batch : *loader) batches_.push_back(batch.to(device));
  }

  tasks::Score score(const tasks::Task& task, auto& model, torch::Device device) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (const auto& [input, target] : batches_) {
      totals += task.loss(model->forward(input), target).totals();
    }
    return task.score(totals);
  }

 private:
  std::vector<tasks::Batch> batches_;
};

// Takes one training step and returns the batch's loss.
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

// Trains for one epoch and returns its score: the mean loss per target.
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

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Membership membership(options);
  const auto device = membership.world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const Kept valid_batches(task->dataset("validation"), options.batch_size, device);
  const Kept test_batches(task->dataset("test"), options.batch_size, device);
  auto train_loader =
      data::make_data_loader(train_set, data::samplers::RandomSampler(*train_set.size()),
                             data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = valid_batches.score(*task, model, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = test_batches.score(*task, model, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
