// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Like a JAX key: every pair of epoch and device has a number of its own.
class EpochKeys {
 public:
  explicit EpochKeys(const World& world)
      : rank_(static_cast<uint64_t>(world.rank)), size_(static_cast<uint64_t>(world.world_size)) {}

  uint64_t operator()(int64_t epoch) const {
    return static_cast<uint64_t>(epoch) * size_ + rank_;
  }

 private:
  uint64_t rank_, size_;
};

// A split's sampler and loader.
struct Stream {
  DistributedSampler sampler;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader;

  Stream(const tasks::Dataset& set, const DistributedSamplerOptions& how,
         const data::DataLoaderOptions& batches)
      : sampler(*set.size(), how), loader(data::make_data_loader(set, sampler, batches)) {}
};

using Consume = std::function<bool(const tasks::Batch&, torch::Tensor& totals)>;

tasks::Score reduce(const tasks::Task& task, torch::Device device, Stream& stream,
                    const Consume& consume) {
  auto totals = task.no_totals(device);
  for (auto& batch : *stream.loader) {
    if (!consume(batch, totals)) break;
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const EpochKeys key_of(world);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  const data::DataLoaderOptions batches(options.batch_size);
  Stream train(train_set, {.shuffle = true, .seed = options.seed, .drop_last = true},
               data::DataLoaderOptions(options.batch_size).drop_last(true));
  Stream valid(task->dataset("validation"), in_order, batches);
  Stream test(task->dataset("test"), in_order, batches);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };
  const Consume update = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    optimizer->zero_grad();
    const auto loss = loss_of(batch);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    return progress.step(loss);
  };
  const Consume measure = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    const torch::NoGradGuard no_grad;
    totals += loss_of(batch).totals();
    return true;
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train.sampler.set_epoch(key_of(epoch));
    model->train();
    const auto trained = reduce(*task, world.device, train, update);
    model->eval();
    const auto validated = reduce(*task, world.device, valid, measure);
    progress.report(trained, validated);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(validated));
    if (validated < best) {
      best = validated;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  model->eval();
  const auto tested = reduce(*task, world.device, test, measure);
  progress.report(tested);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(tested));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
