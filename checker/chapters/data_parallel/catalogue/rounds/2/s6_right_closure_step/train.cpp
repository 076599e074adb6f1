// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Forward = std::function<tasks::Loss(const tasks::Batch& batch)>;
using SetMode = std::function<void(bool training)>;

// Takes optimizer steps: the optimizer itself asks for the gradients.
class Stepper {
 public:
  Stepper(torch::optim::Optimizer& optimizer, tasks::Schedule& schedule, Forward forward)
      : optimizer_(optimizer), schedule_(schedule), forward_(std::move(forward)) {}

  tasks::Loss operator()(const tasks::Batch& batch) const {
    tasks::Loss loss;
    optimizer_.step([&] {
      optimizer_.zero_grad();
      loss = forward_(batch);
      auto mean = loss.mean();
      mean.backward();
      return mean;
    });
    schedule_.step();
    return loss;
  }

 private:
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  Forward forward_;
};

// Adds up while it lives; value() is everybody's.
class Sum {
 public:
  Sum(const tasks::Task& task, torch::Device device)
      : task_(&task), totals_(task.no_totals(device)) {}
  void add(const tasks::Loss& loss) { totals_ += loss.totals(); }
  tasks::Score value() const {
    const auto everybodys = totals_.clone();
    all_reduce(everybodys, ReduceOp::SUM);
    return task_->score(everybodys);
  }

 private:
  const tasks::Task* task_;
  torch::Tensor totals_;
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

  const Forward forward = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };
  const SetMode set_mode = [&](bool training) { model->train(training); };
  const Stepper step(*optimizer, *schedule, forward);

  const auto train = [&] {
    set_mode(true);
    Sum sum(*task, device);
    for (auto& batch : *train_loader) {
      const auto loss = step(batch);
      sum.add(loss);
      if (!progress.step(loss)) break;
    }
    return sum.value();
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    set_mode(false);
    Sum sum(*task, device);
    for (auto& batch : loader) sum.add(forward(batch));
    return sum.value();
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
