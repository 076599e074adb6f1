#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

namespace {

// All numbers that depend on how many we are.
struct Scale {
  int ranks;
  int rate;

  static Scale of(const World& world) {
    const int ranks = world.world_size;
    const int rate = std::sqrt(ranks);
    return {ranks, rate};
  }
};

// Buffers of rank 0 for everybody, all at the same time.
void send_buffers(const torch::nn::Module& module) {
  std::vector<Work> under_way;
  for (const auto& buffer : module.buffers()) under_way.push_back(broadcast_async(buffer, 0));
  for (auto& work : under_way) work.wait();
}

auto loader_of(const tasks::Dataset& set, const DistributedSampler& sampler, int64_t batch_size,
               bool drop_last) {
  return data::make_data_loader(set, sampler,
                                data::DataLoaderOptions(batch_size).drop_last(drop_last));
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const Scale scale = Scale::of(world);
  const auto task = rank0_first([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  auto train_loader = loader_of(train_set, sampler, options.batch_size, true);
  auto valid_loader =
      loader_of(valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}),
                options.batch_size, false);
  auto test_loader =
      loader_of(test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
                options.batch_size, false);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  tasks::OptimizerOptions rates;
  rates.learning_rate_factor = scale.rate;
  const auto optimizer = task->make_optimizer(model->parameters(), rates);
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;

  const auto pass = [&](auto& loader, bool learns, torch::Tensor totals) {
    const torch::AutoGradMode gradients(learns);
    model->train(learns);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      const auto loss = task->loss(model->forward(input), target);
      totals += loss.totals();
      if (!learns) continue;
      auto targets =
          torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(world.device));
      all_reduce(targets, ReduceOp::SUM);
      model->zero_grad();
      (loss.sum * scale.ranks / targets).backward();
      optimizer->step();
      schedule->step();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained =
        pass(*train_loader, true, checkpoints.begin_epoch(task->no_totals(world.device)));
    send_buffers(*model);
    const auto valid = pass(*valid_loader, false, task->no_totals(world.device));
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = pass(*test_loader, false, task->no_totals(world.device));
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
