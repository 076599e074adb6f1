// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A data-parallel model that knows its task: batches in, losses out.
class Learner : public DistributedDataParallelImpl<tasks::Model> {
 public:
  Learner(std::shared_ptr<const tasks::Task> task, torch::Device device)
      : DistributedDataParallelImpl(placed(task->make_model(), device)),
        task_(std::move(task)),
        device_(device) {}
  ~Learner() override = default;

  torch::Tensor forward(const tasks::Input& input) { return module()->forward(input); }

  tasks::Loss loss(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_->loss(forward(input), target);
  }

  torch::Tensor no_totals() const { return task_->no_totals(device_); }
  tasks::Score score(const torch::Tensor& totals) const { return task_->score(totals); }
  auto make_optimizer() const { return task_->make_optimizer(parameters()); }

 private:
  static std::shared_ptr<tasks::Model> placed(std::shared_ptr<tasks::Model> model,
                                              torch::Device device) {
    model->to(device);
    return model;
  }

  std::shared_ptr<const tasks::Task> task_;
  torch::Device device_;
};

// A pass over a loader with a learner.
class Pass {
 public:
  explicit Pass(Learner& learner) : learner_(learner) {}
  virtual ~Pass() = default;

  tasks::Score over(auto& loader) {
    begin();
    auto totals = learner_.no_totals();
    for (auto& batch : loader) {
      if (!visit(batch, totals)) break;
    }
    return learner_.score(totals);
  }

 protected:
  virtual void begin() = 0;
  virtual bool visit(const tasks::Batch& batch, torch::Tensor& totals) = 0;
  Learner& learner_;
};

class TrainingPass final : public Pass {
 public:
  TrainingPass(Learner& learner, const tasks::Task& task, tasks::Progress& progress)
      : Pass(learner),
        progress_(progress),
        optimizer_(learner.make_optimizer()),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

 private:
  void begin() override { learner_.train(); }
  bool visit(const tasks::Batch& batch, torch::Tensor& totals) override {
    optimizer_->zero_grad();
    const auto loss = learner_.loss(batch);
    loss.mean().backward();
    optimizer_->step();
    schedule_->step();
    totals += loss.totals();
    return progress_.step(loss);
  }

  tasks::Progress& progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

class EvaluationPass final : public Pass {
 public:
  using Pass::Pass;

 private:
  void begin() override { learner_.eval(); }
  bool visit(const tasks::Batch& batch, torch::Tensor& totals) override {
    const torch::NoGradGuard no_grad;
    totals += learner_.loss(batch).totals();
    return true;
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = std::make_shared<Learner>(task, world.device);
  tasks::Progress progress(options, *train_set.size());
  TrainingPass training(*model, *task, progress);
  EvaluationPass evaluation(*model);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(static_cast<uint64_t>(epoch));
    const auto trained = training.over(*train_loader);
    const auto valid = evaluation.over(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluation.over(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
