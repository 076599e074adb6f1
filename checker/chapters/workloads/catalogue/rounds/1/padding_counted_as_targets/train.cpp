#include <fmt/format.h>
#include <torch/torch.h>

#include <map>
#include <string>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>>;

struct Part {
  tasks::Dataset set;
  DistributedSampler sampler;
  Loader loader;
};

Part part(const tasks::Task& task, const std::string& name, const tasks::Options& options) {
  const bool trains = name == "train";
  auto set = task.dataset(name);
  const DistributedSampler sampler(
      *set.size(), {.shuffle = trains, .seed = options.seed, .drop_last = trains, .pad = false});
  auto loader = data::make_data_loader(
      set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(trains));
  return {set, sampler, std::move(loader)};
}

// How many numbers the model was asked for in this batch, on average over the ranks.
torch::Tensor mean_number_of_targets(const tasks::Target& target) {
  auto number = torch::full({}, double(target.tensor().numel()),
                            torch::dtype(torch::kDouble).device(target.tensor().device()));
  all_reduce(number, ReduceOp::AVG);
  return number;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = rank0_first([&] { return tasks::make_task(options); });

  std::map<std::string, Part> parts;
  for (const char* name : {"train", "validation", "test"})
    parts.emplace(name, part(*task, name, options));
  auto& [train_set, train_sampler, train_loader] = parts.at("train");

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&](Loader& loader) {
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      (loss.sum / mean_number_of_targets(target)).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    synchronize_buffers(*model);
    return task->score(totals);
  };
  const auto evaluate = [&](const std::string& name) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *parts.at(name).loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  int64_t epoch = checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(train_loader);
    const auto valid = evaluate("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
