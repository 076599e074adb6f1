// Step 06: One rank speaks, one rank writes.
// A results tracker in the manner of ignite: attach, update, compute. Files are written from a
// state_dict on the main process.

#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everybody's mean of one epoch. compute() takes the mean of sums and of counts over the ranks:
// their quotient is that of the sums, and stays so if somebody computes it once more.
class EpochLoss {
 public:
  EpochLoss(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}
  void update(const tasks::Loss& loss) { totals_ += loss.totals(); }
  tasks::Score compute() {
    all_reduce(totals_, ReduceOp::AVG);
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
};

// unwrap_model() and save_pretrained(), on the main process only.
void save_on_main(const torch::nn::Module& model, const std::filesystem::path& path) {
  if (get_rank() == 0) save_file(state_dict(model), path);
}

template <class Model>
class Engine {
 public:
  Engine(const tasks::Task& task, Model model, torch::Device device)
      : task_(task), model_(std::move(model)), device_(device) {}

  template <class Optimize>
  EpochLoss train(auto& loader, Optimize optimize) {
    model_->train();
    EpochLoss result(task_, device_);
    for (auto& batch : loader) {
      const auto loss = forward(batch);
      result.update(loss);
      if (!optimize(loss)) break;
    }
    metrics["train"] = result.compute();
    return result;
  }

  EpochLoss evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    EpochLoss result(task_, device_);
    for (auto& batch : loader) result.update(forward(batch));
    metrics["evaluation"] = result.compute();
    return result;
  }

  // The newest results, for handlers that want them.
  std::map<std::string, tasks::Score> metrics;

 private:
  tasks::Loss forward(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }

  const tasks::Task& task_;
  Model model_;
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

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Engine engine(*task, model, device);

  const auto optimize = [&](const tasks::Loss& loss) {
    model->zero_grad();
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return progress.step(loss);
  };

  std::map<std::string, tasks::Score> results;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    auto trained = engine.train(*train_loader, optimize);
    auto valid = engine.evaluate(*valid_loader);
    // For the log once more: all ranks compute, one prints.
    const auto training_loss = trained.compute();
    const auto validation_loss = valid.compute();
    progress.report(training_loss, validation_loss);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(training_loss), task->format(validation_loss));
    if (validation_loss < results["best"]) {
      results["best"] = validation_loss;
      save_on_main(*model, options.output / "model-best.safetensors");
    }
  }

  results["test"] = engine.evaluate(*test_loader).compute();
  progress.report(results["test"]);
  print0("best validation loss: {}", task->describe(results["best"]));
  print0("test loss: {}", task->describe(results["test"]));
  save_on_main(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
