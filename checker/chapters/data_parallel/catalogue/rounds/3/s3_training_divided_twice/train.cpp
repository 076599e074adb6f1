// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The part of a dataset that lives in this rank's memory: `count` samples from `first` on. Its own
// indices start at 0, as those of a local array do.
class LocalArray : public data::datasets::BatchDataset<LocalArray, tasks::Batch> {
 public:
  LocalArray(tasks::Dataset global, size_t first, size_t count)
      : global_(std::move(global)), first_(first), count_(count) {}

  tasks::Batch get_batch(c10::ArrayRef<size_t> local) override {
    std::vector<size_t> indices;
    for (const size_t i : local) indices.push_back(first_ + i);
    return global_.get_batch(indices);
  }
  std::optional<size_t> size() const override { return count_; }

 private:
  tasks::Dataset global_;
  size_t first_;
  size_t count_;
};

LocalArray distribute(const tasks::Dataset& global, const World& world) {
  const size_t count = *global.size() / world.world_size;
  return {global, world.rank * count, count};
}

// One pass; `update` is empty for evaluation.
struct Pass {
  const tasks::Task& task;
  const std::shared_ptr<tasks::Model>& model;
  torch::Device device;

  tasks::Score over(auto& loader, auto&& update) const {
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      const auto loss = task.loss(model->forward(input), target);
      totals += loss.totals();
      if (!update(loss)) break;
    }
    return task.score(totals);
  }

  tasks::Score over(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    return over(loader, [](const tasks::Loss&) { return true; });
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  // Only training data are large enough to be worth distributing.
  const auto local_train_set = distribute(train_set, world);

  DistributedSampler train_sampler(*local_train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(local_train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Pass pass{*task, model, world.device};
  const auto update = [&](const tasks::Loss& loss) {
    optimizer->zero_grad();
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return progress.step(loss);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    const auto trained = pass.over(*train_loader, update);
    const auto valid = pass.over(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = pass.over(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
