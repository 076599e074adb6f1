// Step 04: one model on all ranks. A guard leaves the process group, whatever happens.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Joins the other ranks, and leaves them at the end of its life.
class Session {
 public:
  explicit Session(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() { destroy_process_group(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  World world() const { return world_; }

 private:
  World world_;
};

// The three loaders of a run and the sampler that wants to know the epoch.
struct Data {
  Data(const tasks::Task& task, const tasks::Options& options, const World& world)
      : train_set(task.dataset("train")),
        sampler(*train_set.size(), {.shuffle = true,
                                    .seed = options.seed,
                                    .drop_last = true,
                                    .num_replicas = world.world_size,
                                    .rank = world.rank}),
        train(data::make_data_loader(
            train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true))),
        valid(whole(task.dataset("validation"), options, world)),
        test(whole(task.dataset("test"), options, world)) {}

  static std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> whole(
      const tasks::Dataset& set, const tasks::Options& options, const World& world) {
    const DistributedSampler sampler(*set.size(), {.shuffle = false,
                                                   .pad = false,
                                                   .num_replicas = world.world_size,
                                                   .rank = world.rank});
    return data::make_data_loader(set, sampler, data::DataLoaderOptions(options.batch_size));
  }

  using Loader = std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>>;
  tasks::Dataset train_set;
  DistributedSampler sampler;
  Loader train, valid, test;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = Session(options).world();

  const auto task = tasks::make_task(options);
  Data data(*task, options, world);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *data.train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    data.sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *data.train, *optimizer, *schedule, world.device, progress);
    const auto valid = evaluate(*task, model, *data.valid, world.device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *data.test, world.device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
