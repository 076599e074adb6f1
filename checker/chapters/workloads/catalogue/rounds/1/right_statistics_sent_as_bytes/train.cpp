#include <fmt/format.h>
#include <torch/torch.h>

#include <sstream>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// As Python's broadcast_object_list: rank 0 packs, all others unpack.
std::string broadcast_bytes(const std::string& bytes, torch::Device device) {
  auto size = torch::tensor({int64_t(bytes.size())}, torch::kLong).to(device);
  broadcast(size, 0);
  auto message = torch::empty({size.item<int64_t>()}, torch::kByte);
  if (get_rank() == 0) std::memcpy(message.data_ptr(), bytes.data(), bytes.size());
  message = message.to(device);
  broadcast(message, 0);
  message = message.cpu();
  return {static_cast<const char*>(message.data_ptr()), size_t(message.numel())};
}

void same_statistics(const torch::nn::Module& module, torch::Device device) {
  auto mine = module.buffers();
  if (mine.empty()) return;
  std::ostringstream packed;
  if (get_rank() == 0) torch::save(mine, packed);
  std::istringstream received(broadcast_bytes(packed.str(), device));
  if (get_rank() == 0) return;
  std::vector<torch::Tensor> theirs;
  torch::load(theirs, received, device);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < mine.size(); ++i) mine[i].copy_(theirs[i]);
}

enum class Mode { learn, look };

struct Machine {
  const tasks::Options& options;
  World world;
  std::shared_ptr<tasks::Task> task;
  DistributedDataParallel<tasks::Model>& model;
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;
  tasks::Checkpointing& checkpoints;

  template <Mode mode>
  tasks::Score pass(auto& loader) {
    const torch::AutoGradMode gradients(mode == Mode::learn);
    model->train(mode == Mode::learn);
    auto totals = task->no_totals(world.device);
    if constexpr (mode == Mode::learn) totals = checkpoints.begin_epoch(totals);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if constexpr (mode == Mode::learn) {
        if (!step(loss)) break;
        checkpoints.step(totals);
      }
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }

  bool step(const tasks::Loss& loss) {
    // W * sum / C, whose mean over W ranks is the mean over all C targets.
    auto targets = torch::tensor({loss.count}, torch::kLong).to(world.device);
    all_reduce(targets, ReduceOp::SUM);
    const double factor = double(world.world_size) / targets.item<double>();
    optimizer.zero_grad();
    (loss.sum * factor).backward();
    optimizer.step();
    schedule.step();
    return progress.step(loss);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  // Main process of each node first.
  const bool first = world.local_rank == 0;
  if (!first) barrier();
  const auto task = tasks::make_task(options);
  if (first) barrier();

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto shares = [&](const char* split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  DistributedDataParallel model(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(1. * get_world_size())});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Machine machine{options, world, task, model, *optimizer, *schedule, progress, checkpoints};
  const auto valid_loader = shares("validation");
  const auto test_loader = shares("test");

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = machine.pass<Mode::learn>(*train_loader);
    same_statistics(*module, world.device);
    const auto valid = machine.pass<Mode::look>(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = machine.pass<Mode::look>(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
