// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

struct Setting {
  const tasks::Options& options;
  const tasks::Task& task;
  const World& world;
  std::shared_ptr<tasks::Model> model;
};

// A pass over a split. The loader is made at the first run, when the object is complete, so that
// derived classes have their say.
class Phase {
 public:
  Phase(const Setting& setting, const char* split)
      : setting_(setting), set_(setting.task.dataset(split)) {}
  virtual ~Phase() = default;

  tasks::Score run() {
    if (!loader_) {
      loader_ = data::make_data_loader(set_, DistributedSampler(size(), sampling()), batching());
    }
    auto totals = setting_.task.no_totals(setting_.world.device);
    pass(totals);
    return setting_.task.score(totals);
  }

  size_t size() const { return *set_.size(); }

 protected:
  virtual DistributedSamplerOptions sampling() const = 0;
  virtual data::DataLoaderOptions batching() const {
    return data::DataLoaderOptions(setting_.options.batch_size);
  }
  virtual void pass(torch::Tensor& totals) = 0;

  auto& loader() { return *loader_; }
  tasks::Model& model() const { return *setting_.model; }
  tasks::Loss forward(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(setting_.world.device);
    return setting_.task.loss(model().forward(input), target);
  }

  const Setting& setting_;

 private:
  tasks::Dataset set_;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader_;
};

class TrainingPhase : public Phase {
 public:
  TrainingPhase(const Setting& setting)
      : Phase(setting, "train"),
        progress(setting.options, size()),
        optimizer_(setting.task.make_optimizer(model().parameters())),
        schedule_(setting.task.make_schedule(*optimizer_, progress.total_steps())) {}

  tasks::Progress progress;

 protected:
  DistributedSamplerOptions sampling() const override {
    return {.shuffle = true, .seed = setting_.options.seed, .drop_last = true};
  }
  data::DataLoaderOptions batching() const override {
    return Phase::batching().drop_last(true);
  }
  void pass(torch::Tensor& totals) override {
    model().train();
    for (auto& batch : loader()) {
      optimizer_->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress.step(loss)) return;
    }
  }

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

class EvaluationPhase : public Phase {
 public:
  using Phase::Phase;

 protected:
  DistributedSamplerOptions sampling() const override { return {.shuffle = false, .pad = false}; }
  void pass(torch::Tensor& totals) override {
    const torch::NoGradGuard no_grad;
    model().eval();
    for (auto& batch : loader()) totals += forward(batch).totals();
  }
};

struct ValidationPhase final : EvaluationPhase {
  explicit ValidationPhase(const Setting& setting) : EvaluationPhase(setting, "validation") {}
};
struct TestPhase final : EvaluationPhase {
  explicit TestPhase(const Setting& setting) : EvaluationPhase(setting, "test") {}
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);

  const Setting setting{options, *task, world, task->make_model()};
  setting.model->to(world.device);
  TrainingPhase training(setting);
  ValidationPhase validation(setting);
  TestPhase testing(setting);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !training.progress.finished(); ++epoch) {
    const auto trained = training.run();
    const auto valid = validation.run();
    training.progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(setting.model, options.output / "model-best.pt");
    }
  }

  const auto test = testing.run();
  training.progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(setting.model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
