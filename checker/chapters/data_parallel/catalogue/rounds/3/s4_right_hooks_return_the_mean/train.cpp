// Step 04: every gradient is averaged by a hook, as soon as backward() has made it.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// While it lives, backward() leaves the mean gradient of all ranks in every parameter.
class GradientAveraging {
 public:
  explicit GradientAveraging(const torch::nn::Module& module) : parameters_(module.parameters()) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : parameters_) {
      broadcast(parameter, 0);
      handles_.push_back(parameter.register_hook([](const torch::Tensor& gradient) {
        auto mean = gradient.clone();
        all_reduce(mean, ReduceOp::AVG);
        return mean;
      }));
    }
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);
  }
  ~GradientAveraging() {
    for (size_t i = 0; i < handles_.size(); ++i) parameters_[i].remove_hook(handles_[i]);
  }
  GradientAveraging(const GradientAveraging&) = delete;
  GradientAveraging& operator=(const GradientAveraging&) = delete;

 private:
  std::vector<torch::Tensor> parameters_;
  std::vector<unsigned> handles_;
};

class Trainer {
 public:
  Trainer(const tasks::Task& task, tasks::Model& model, torch::Device device)
      : task_(task), model_(model), device_(device) {}

  tasks::Score train(auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model_.train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model_.eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) totals += forward(batch).totals();
    return task_.score(totals);
  }

 private:
  tasks::Loss forward(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_.forward(input), target);
  }

  const tasks::Task& task_;
  tasks::Model& model_;
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

  const auto model = task->make_model();
  model->to(device);
  const GradientAveraging averaging(*model);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Trainer trainer(*task, *model, device);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.train(*train_loader, *optimizer, *schedule, progress);
    const auto valid = trainer.evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
