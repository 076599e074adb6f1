// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A split of the data: its set, its sampler, its loader. Derived classes say how to sample.
class Split {
 public:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  Split(const tasks::Task& task, const char* name, const tasks::Options& options,
        const data::DataLoaderOptions& batches)
      : set_(task.dataset(name)), seed_(options.seed) {
    const DistributedSampler sampler(*set_.size(), sampling());
    loader_ = data::make_data_loader(set_, sampler, batches);
  }
  virtual ~Split() = default;

  Loader& loader() { return *loader_; }
  size_t size() const { return *set_.size(); }

 protected:
  // Shuffled and of equal shares, unless a split wants it differently.
  virtual DistributedSamplerOptions sampling() const {
    return {.shuffle = true, .seed = seed_, .drop_last = true};
  }

 private:
  tasks::Dataset set_;
  uint64_t seed_;
  std::unique_ptr<Loader> loader_;
};

class TrainingSplit final : public Split {
 public:
  TrainingSplit(const tasks::Task& task, const tasks::Options& options)
      : Split(task, "train", options,
              data::DataLoaderOptions(options.batch_size).drop_last(true)) {}
};

// In order, each sample once.
class EvaluationSplit final : public Split {
 public:
  EvaluationSplit(const tasks::Task& task, const char* name, const tasks::Options& options)
      : Split(task, name, options, data::DataLoaderOptions(options.batch_size)) {}

 protected:
  DistributedSamplerOptions sampling() const override { return {.shuffle = false, .pad = false}; }
};

// A pass over a split.
class Phase {
 public:
  Phase(const tasks::Task& task, tasks::Model& model, torch::Device device)
      : task_(task), model_(model), device_(device) {}
  virtual ~Phase() = default;

  tasks::Score run(Split& split) {
    auto totals = task_.no_totals(device_);
    for (auto& batch : split.loader()) {
      if (!take(batch, totals)) break;
    }
    return task_.score(totals);
  }

 protected:
  virtual bool take(const tasks::Batch& batch, torch::Tensor& totals) = 0;

  tasks::Loss loss(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_.forward(input), target);
  }

  const tasks::Task& task_;
  tasks::Model& model_;
  torch::Device device_;
};

class Training final : public Phase {
 public:
  Training(const tasks::Task& task, tasks::Model& model, torch::Device device,
           tasks::Progress& progress)
      : Phase(task, model, device),
        progress_(progress),
        optimizer_(task.make_optimizer(model.parameters())),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

 private:
  bool take(const tasks::Batch& batch, torch::Tensor& totals) override {
    model_.train();
    optimizer_->zero_grad();
    const auto value = loss(batch);
    value.mean().backward();
    optimizer_->step();
    schedule_->step();
    totals += value.totals();
    return progress_.step(value);
  }

  tasks::Progress& progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

class Evaluation final : public Phase {
 public:
  using Phase::Phase;

 private:
  bool take(const tasks::Batch& batch, torch::Tensor& totals) override {
    const torch::NoGradGuard no_grad;
    model_.eval();
    totals += loss(batch).totals();
    return true;
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  TrainingSplit train_split(*task, options);
  EvaluationSplit valid_split(*task, "validation", options);
  EvaluationSplit test_split(*task, "test", options);

  const auto model = task->make_model();
  model->to(world.device);
  tasks::Progress progress(options, train_split.size());
  Training training(*task, *model, world.device, progress);
  Evaluation evaluation(*task, *model, world.device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = training.run(train_split);
    const auto valid = evaluation.run(valid_split);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluation.run(test_split);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
