// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Where batches come from. A test hands in a few of its own.
struct BatchSource {
  virtual ~BatchSource() = default;
  // Calls visit for each batch of a pass, until it returns false.
  virtual void each(const std::function<bool(const tasks::Batch&)>& visit) = 0;
};

// Batches of a loader, kept once they were read: tokenised text need not be cut into windows again
// in every epoch.
class KeptBatches : public BatchSource {
 public:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  explicit KeptBatches(std::unique_ptr<Loader> loader) : loader_(std::move(loader)) {}

  void each(const std::function<bool(const tasks::Batch&)>& visit) override {
    if (kept_.empty()) {
      for (auto& batch : *loader_) kept_.push_back(batch);
    }
    for (const auto& batch : kept_) {
      if (!visit(batch)) return;
    }
  }

 private:
  std::unique_ptr<Loader> loader_;
  std::vector<tasks::Batch> kept_;
};

tasks::Score over_all_ranks(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score train(const tasks::Task& task, const auto& model, BatchSource& source,
                   torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                   torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  source.each([&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    return progress.step(loss);
  });
  return over_all_ranks(task, totals);
}

tasks::Score evaluate(const tasks::Task& task, const auto& model, BatchSource& source,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  source.each([&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
    return true;
  });
  return over_all_ranks(task, totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

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
  KeptBatches training(data::make_data_loader(train_set, train_sampler, train_batches));
  KeptBatches validation(data::make_data_loader(valid_set, valid_sampler, batches));
  KeptBatches testing(data::make_data_loader(test_set, test_sampler, batches));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(*task, model, training, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, validation, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, testing, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
