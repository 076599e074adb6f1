#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <numeric>

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

// Samples [first, last) of a split.
struct Stretch {
  size_t first, last;

  static Stretch of(size_t samples, const World& world) {
    const auto border = [&](int rank) {
      return samples * static_cast<size_t>(rank) / static_cast<size_t>(world.world_size);
    };
    return {border(world.rank), border(world.rank + 1)};
  }
};

// Measures on a contiguous part of a split; the first and last batch may be small.
class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const World& world, int64_t batch_size)
      : task_(task), world_(world), batch_size_(static_cast<size_t>(batch_size)) {}

  tasks::Score operator()(auto& model, std::string_view split) const {
    const torch::NoGradGuard no_grad;
    auto set = task_.dataset(split);
    const Stretch block = Stretch::of(*set.size(), world_);
    model->eval();
    auto totals = task_.no_totals(world_.device);
    for (size_t at = block.first; at < block.last; at += batch_size_) {
      std::vector<size_t> indices(std::min(batch_size_, block.last - at));
      std::iota(indices.begin(), indices.end(), at);
      const auto [input, target] = set.get_batch(indices).to(world_.device);
      totals += task_.loss(model->forward(input), target).totals();
    }
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  World world_;
  size_t batch_size_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  const Evaluator evaluate(*task, world, options.batch_size);

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
    const auto valid = evaluate(model, "validation");
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(model, "test");
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
