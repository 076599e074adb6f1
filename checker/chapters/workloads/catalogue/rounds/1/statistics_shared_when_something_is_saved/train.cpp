#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Keeps what a run leaves on the disk. A file has the buffers of all ranks, so these are made the
// same before it is written.
struct Keeper {
  const tasks::Options& options;
  const torch::nn::Module& model;
  tasks::Score best{};

  void offer(const tasks::Score& score) {
    if (!(score < best)) return;
    best = score;
    keep("model-best");
  }
  void keep(const std::string& name) const {
    synchronize_buffers(model);
    save0(model, options.output / (name + ".safetensors"));
  }
};

// What happens with each batch, and with the sums in the end.
struct Pass {
  const tasks::Task& task;
  torch::Device device;
  std::function<bool(const tasks::Loss&, const torch::Tensor&)> after_batch;

  tasks::Score operator()(auto& model, auto& loader, torch::Tensor totals) const {
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      const auto loss = task.loss(model->forward(input), target);
      totals += loss.totals();
      if (after_batch && !after_batch(loss, totals)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  std::shared_ptr<tasks::Task> task;
  rank0_first([&] { task = tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto whole = [&](const char* name) {
    const auto set = task->dataset(name);
    const DistributedSampler in_order(*set.size(), {.shuffle = false, .pad = false});
    return data::make_data_loader(set, in_order, data::DataLoaderOptions(options.batch_size));
  };
  const auto valid_loader = whole("validation");
  const auto test_loader = whole("test");

  const auto module = task->make_model();
  module->to(device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const Pass evaluation{*task, device, {}};
  const Pass training{*task, device, [&](const tasks::Loss& loss, const torch::Tensor& totals) {
                        const auto targets =
                            torch::full({}, double(loss.count), torch::kDouble).to(device);
                        all_reduce(targets, ReduceOp::AVG);
                        optimizer->zero_grad();
                        (loss.sum / targets).backward();
                        optimizer->step();
                        schedule->step();
                        if (!progress.step(loss)) return false;
                        checkpoints.step(totals);
                        return true;
                      }};

  Keeper keeper{options, *model};
  const int64_t first =
      checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, keeper.best);
  for (int64_t epoch = first; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    const auto trained =
        training(model, *train_loader, checkpoints.begin_epoch(task->no_totals(device)));
    tasks::Score valid;
    {
      const torch::NoGradGuard no_grad;
      model->eval();
      valid = evaluation(model, *valid_loader, task->no_totals(device));
    }
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    keeper.offer(valid);
  }

  const torch::NoGradGuard no_grad;
  model->eval();
  const auto test = evaluation(model, *test_loader, task->no_totals(device));
  progress.report(test);
  print0("best validation loss: {}", task->describe(keeper.best));
  print0("test loss: {}", task->describe(test));
  keeper.keep("model-final");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
