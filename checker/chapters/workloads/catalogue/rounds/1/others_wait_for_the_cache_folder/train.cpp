#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tasks/checkpointing.hpp"
#include "tasks/prepared.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace std::chrono_literals;

namespace data = torch::data;

// The first rank of each node writes the data; the others start when they are on the disk. Not all
// tasks have data on the disk, so nobody waits longer than ten seconds.
std::shared_ptr<tasks::Task> task_of_node(const tasks::Options& options, int local_rank) {
  const auto folder = tasks::cache_folder();
  const auto latest = std::chrono::steady_clock::now() + 10s;
  if (local_rank != 0)
    while (!std::filesystem::exists(folder) && std::chrono::steady_clock::now() < latest)
      std::this_thread::sleep_for(20ms);
  return tasks::make_task(options);
}

// Everybody gets the buffers of rank 0 in one message of floats and one of whole numbers.
void same_buffers(const torch::nn::Module& module) {
  for (const bool floats : {true, false}) {
    std::vector<torch::Tensor> chosen, flat;
    for (const auto& buffer : module.buffers())
      if (buffer.is_floating_point() == floats) chosen.push_back(buffer);
    if (chosen.empty()) continue;
    for (const auto& buffer : chosen) flat.push_back(buffer.flatten().to(chosen[0].dtype()));
    auto message = torch::cat(flat);
    broadcast(message, 0);
    int64_t at = 0;
    for (auto& buffer : chosen) {
      buffer.copy_(message.slice(0, at, at + buffer.numel()).view(buffer.sizes()));
      at += buffer.numel();
    }
  }
}

template <typename Step>
torch::Tensor walk(auto& loader, torch::Device device, torch::Tensor totals, Step step) {
  for (auto& batch : loader) {
    const bool more = step(batch.to(device), totals);
    if (!more) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return totals;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = task_of_node(options, world.local_rank);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  const auto batches = data::DataLoaderOptions(options.batch_size);
  const auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader =
      data::make_data_loader(valid_set, DistributedSampler(*valid_set.size(), in_order), batches);
  const auto test_loader =
      data::make_data_loader(test_set, DistributedSampler(*test_set.size(), in_order), batches);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  tasks::OptimizerOptions rates;
  rates.learning_rate_factor *= std::sqrt(static_cast<double>(get_world_size()));
  const auto optimizer = task->make_optimizer(model->parameters(), rates);
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train_on = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    const auto mean_targets = torch::scalar_tensor(
        double(loss.count), torch::dtype(torch::kDouble).device(loss.sum.device()));
    all_reduce(mean_targets, ReduceOp::AVG);
    optimizer->zero_grad();
    (loss.sum / mean_targets).backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    if (!progress.step(loss)) return false;
    checkpoints.step(totals);
    return true;
  };
  const auto look_at = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    const torch::NoGradGuard no_grad;
    totals += task->loss(model->forward(batch.input), batch.target).totals();
    return true;
  };

  tasks::Score best;
  for (int64_t epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
       epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto sums = checkpoints.begin_epoch(task->no_totals(world.device));
    const auto trained = task->score(walk(*train_loader, world.device, sums, train_on));
    same_buffers(*module);
    model->eval();
    const auto valid =
        task->score(walk(*valid_loader, world.device, task->no_totals(world.device), look_at));
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*module, options.output / "model-best.safetensors");
    }
  }
  model->eval();
  const auto test =
      task->score(walk(*test_loader, world.device, task->no_totals(world.device), look_at));
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*module, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
