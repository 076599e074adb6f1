#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What happens around an epoch.
struct Callback {
  virtual ~Callback() = default;
  virtual void training_begins(int64_t) {}
  virtual void training_ends() {}
  virtual void validated(int64_t, const tasks::Score&, const tasks::Score&) {}
};

struct SetEpoch : Callback {
  explicit SetEpoch(DistributedSampler& s) : sampler(s) {}
  void training_begins(int64_t epoch) override { sampler.set_epoch(epoch); }
  DistributedSampler& sampler;
};

// Running means and variances become the mean over the ranks, counters are rank 0's.
struct AverageBuffers : Callback {
  explicit AverageBuffers(torch::nn::Module& m) : module(m) {}
  void training_ends() override {
    const torch::NoGradGuard no_grad;
    for (auto buffer : module.buffers()) {
      auto average = buffer.clone();
      if (buffer.is_floating_point()) {
        all_reduce(average, ReduceOp::AVG);
      } else {
        broadcast(average, 0);
      }
      buffer = average;
    }
  }
  torch::nn::Module& module;
};

struct TellAndSave : Callback {
  TellAndSave(const tasks::Options& o, const tasks::Task& t, torch::nn::Module& m)
      : options(o), task(t), module(m) {}
  void validated(int64_t epoch, const tasks::Score& trained, const tasks::Score& valid) override {
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task.format(trained), task.format(valid));
    if (valid < best) {
      best = valid;
      save0(module, options.output / "model-best.safetensors");
    }
  }
  const tasks::Options& options;
  const tasks::Task& task;
  torch::nn::Module& module;
  tasks::Score best;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = rank0_first([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions all{.shuffle = false, .pad = false};
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, DistributedSampler(*valid_set.size(), all),
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader = data::make_data_loader(test_set, DistributedSampler(*test_set.size(), all),
                                            data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  SetEpoch set_epoch(sampler);
  AverageBuffers average_buffers(*module);
  TellAndSave tell_and_save(options, *task, *model);
  const std::vector<Callback*> callbacks = {&set_epoch, &average_buffers, &tell_and_save};

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  int64_t epoch =
      checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, tell_and_save.best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    for (auto* callback : callbacks) callback->training_begins(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      auto count =
          torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(world.device));
      all_reduce(count, ReduceOp::AVG);
      (loss.sum / count).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    for (auto* callback : callbacks) callback->training_ends();
    const auto trained = task->score(totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    for (auto* callback : callbacks) callback->validated(epoch, trained, valid);
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(tell_and_save.best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
