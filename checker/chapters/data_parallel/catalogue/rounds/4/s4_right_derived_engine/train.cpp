// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// Splits: a base for what all of them have, and a class for each of the two ways to sample.
class Split {
 public:
  virtual ~Split() = default;
  virtual void begin_epoch(int64_t /*epoch*/) {}
  Loader& loader() { return *loader_; }
  size_t size() const { return *set_.size(); }

 protected:
  Split(const tasks::Dataset& set, const DistributedSamplerOptions& sampling,
        const data::DataLoaderOptions& batching)
      : set_(set),
        sampler_(*set.size(), sampling),
        loader_(data::make_data_loader(set_, sampler_, batching)) {}

  tasks::Dataset set_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> loader_;
};

class ShuffledSplit final : public Split {
 public:
  ShuffledSplit(const tasks::Dataset& set, const tasks::Options& options)
      : Split(set, {.shuffle = true, .seed = options.seed, .drop_last = true},
              data::DataLoaderOptions(options.batch_size).drop_last(true)) {}
  void begin_epoch(int64_t epoch) override { sampler_.set_epoch(static_cast<uint64_t>(epoch)); }
};

class OrderedSplit final : public Split {
 public:
  OrderedSplit(const tasks::Dataset& set, const tasks::Options& options)
      : Split(set, {.shuffle = false, .pad = false},
              data::DataLoaderOptions(options.batch_size)) {}
};

// The wrapped model, and what trains it.
class Engine final : public DistributedDataParallelImpl<tasks::Model> {
 public:
  Engine(const std::shared_ptr<tasks::Model>& on_device, const tasks::Task& task,
         torch::Device device, tasks::Progress& progress)
      : DistributedDataParallelImpl(on_device),
        task_(task),
        device_(device),
        progress_(progress),
        optimizer_(task.make_optimizer(parameters())),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

  tasks::Score train_on(Split& split) {
    train();
    auto totals = task_.no_totals(device_);
    for (auto& batch : split.loader()) {
      optimizer_->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score evaluate_on(Split& split) {
    const torch::NoGradGuard no_grad;
    eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : split.loader()) totals += loss_of(batch).totals();
    return task_.score(totals);
  }

 private:
  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(forward(input), target);
  }

  const tasks::Task& task_;
  torch::Device device_;
  tasks::Progress& progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  ShuffledSplit train_split(task->dataset("train"), options);
  OrderedSplit valid_split(task->dataset("validation"), options);
  OrderedSplit test_split(task->dataset("test"), options);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Progress progress(options, train_split.size());
  const auto engine = std::make_shared<Engine>(module, *task, world.device, progress);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    for (Split* split : std::initializer_list<Split*>{&train_split, &valid_split}) {
      split->begin_epoch(epoch);
    }
    const auto trained = engine->train_on(train_split);
    const auto valid = engine->evaluate_on(valid_split);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(engine, options.output / "model-best.pt");
    }
  }

  const auto test = engine->evaluate_on(test_split);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(engine, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
