// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// A pass in steps: each call gives the totals of one more batch, and nothing once there are none.
using Steps = std::function<std::optional<torch::Tensor>()>;

// Calls steps until they end, and returns the score over the totals of all ranks.
tasks::Score drain(const tasks::Task& task, torch::Device device, const Steps& next) {
  auto mine = task.no_totals(device);
  while (const auto totals = next()) mine += *totals;
  return task.score(all_gather(mine).sum(0));
}

// The batches of one pass over a loader, one with each call.
class Batches {
 public:
  explicit Batches(Loader& loader) : loader_(loader), place_(loader.begin()) {}

  tasks::Batch* next() {
    if (!fresh_) ++place_;
    fresh_ = false;
    return place_ == loader_.end() ? nullptr : &*place_;
  }

 private:
  Loader& loader_;
  data::Iterator<tasks::Batch> place_;
  bool fresh_ = true;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

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
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // Training, a step with each call. It ends with the batches or with the run's last step.
  const auto training = [&]() -> Steps {
    model->train();
    const auto source = std::make_shared<Batches>(*train_loader);
    const auto over = std::make_shared<bool>(false);
    return [&, source, over]() -> std::optional<torch::Tensor> {
      const auto* batch = *over ? nullptr : source->next();
      if (!batch) return std::nullopt;
      const auto [input, target] = batch->to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      *over = !progress.step(loss);
      return loss.totals();
    };
  };

  // Evaluation, a batch with each call.
  const auto evaluation = [&](Loader& loader) -> Steps {
    model->eval();
    const auto source = std::make_shared<Batches>(loader);
    return [&, source]() -> std::optional<torch::Tensor> {
      const torch::NoGradGuard no_grad;
      const auto* batch = source->next();
      if (!batch) return std::nullopt;
      const auto [input, target] = batch->to(device);
      return task->loss(model->forward(input), target).totals();
    };
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = drain(*task, device, training());
    const auto valid = drain(*task, device, evaluation(*valid_loader));
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = drain(*task, device, evaluation(*test_loader));
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
