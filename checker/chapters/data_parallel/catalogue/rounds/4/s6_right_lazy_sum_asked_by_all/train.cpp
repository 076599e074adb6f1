// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A value that is computed when it is first asked for, and once only.
template <typename T>
class Lazy {
 public:
  explicit Lazy(std::function<T()> compute) : compute_(std::move(compute)) {}

  const T& get() {
    if (!value_) value_ = compute_();
    return *value_;
  }

 private:
  std::function<T()> compute_;
  std::optional<T> value_;
};

using LazyScore = Lazy<tasks::Score>;

// The sums of this rank are there at once; those of the others are asked for with the score. All
// ranks ask, in the same order.
LazyScore score_later(const tasks::Task& task, torch::Tensor totals) {
  return LazyScore([&task, totals = std::move(totals)] {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  });
}

template <typename Model>
struct Machine {
  const tasks::Task& task;
  Model model;
  torch::Device device;

  // Calls react with each batch's loss, until it returns false.
  LazyScore pass(auto& loader, const auto& react) const {
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      const auto loss = task.loss(model->forward(input), target);
      totals += loss.totals();
      if (!react(loss)) break;
    }
    return score_later(task, totals);
  }

  LazyScore evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    return pass(loader, [](const tasks::Loss&) { return true; });
  }
};

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
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Machine<DistributedDataParallel<tasks::Model>> machine{*task, model, device};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](const tasks::Loss& loss) {
    loss.mean().backward();
    optimizer->step();
    optimizer->zero_grad();
    schedule->step();
    return progress.step(loss);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto trained = machine.pass(*train_loader, learn);
    auto valid = machine.evaluate(*valid_loader);
    const bool better = valid.get() < best;
    if (better) best = valid.get();
    const auto& training_score = trained.get();
    progress.report(training_score, valid.get());
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(training_score), task->format(valid.get()));
    if (better) save0(*model, options.output / "model-best.safetensors");
  }

  auto test = machine.evaluate(*test_loader);
  progress.report(test.get());
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test.get()));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
