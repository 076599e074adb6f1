#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everything that a module has learned, on all ranks as on rank 0, in one message.
void same_everywhere(const torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  auto state = module.parameters(/*recurse=*/true);
  std::vector<torch::Tensor> flat;
  for (const auto& tensor : state) flat.push_back(tensor.reshape({-1}));
  auto message = torch::cat(flat);
  broadcast(message, 0);
  std::vector<int64_t> sizes;
  for (const auto& tensor : state) sizes.push_back(tensor.numel());
  const auto parts = message.split_with_sizes(sizes);
  for (size_t i = 0; i < state.size(); ++i) state[i].copy_(parts[i].view_as(state[i]));
}

struct Run {
  tasks::Options options;
  World world;
  std::shared_ptr<tasks::Task> task;
  tasks::Checkpointing checkpoints;
  tasks::Dataset train_set;
  tasks::Progress progress;

  explicit Run(const tasks::Options& given)
      : options(given),
        world(setup({.backend = options.backend, .device = options.device})),
        task(rank0_first([this] { return tasks::make_task(options); })),
        checkpoints(options),
        train_set(task->dataset("train")),
        progress(options, *train_set.size()) {}

  double rate_factor() const { return std::sqrt(double(world.world_size)); }

  // The mean number of targets of all ranks in this step.
  double mean_targets(int64_t count) const {
    auto counts = torch::tensor({double(count)}, torch::kDouble).to(world.device);
    all_reduce(counts, ReduceOp::SUM);
    return counts.item<double>() / world.world_size;
  }

  tasks::Score train(auto& model, auto& loader, auto& optimizer, auto& schedule) {
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      const double divisor = mean_targets(target.count());
      optimizer.zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      (loss.sum / divisor).backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }

  tasks::Score evaluate(auto& model, const std::string& split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task->dataset(split);
    auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }

  void operator()() {
    const auto module = task->make_model();
    module->to(world.device);
    const auto model =
        DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
    const auto optimizer =
        task->make_optimizer(model->parameters(), {.learning_rate_factor = rate_factor()});
    const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
    DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
    auto loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
    tasks::Score best;
    for (int64_t epoch =
             checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
         epoch < options.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      const auto trained = train(model, *loader, *optimizer, *schedule);
      same_everywhere(*model);
      const auto valid = evaluate(model, "validation");
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
             task->format(trained), task->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(model, "test");
    progress.report(test);
    print0("best validation loss: {}", task->describe(best));
    print0("test loss: {}", task->describe(test));
    save0(*model, options.output / "model-final.safetensors");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  {
    Run run(options);
    run();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
