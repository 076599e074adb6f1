// Step 04: The ranks train one model.
// A "strategy" in Lightning's sense, written by hand: it keeps the replicas equal.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// Data parallelism without overlap: equal weights at the start, the mean gradient in every step.
class ReplicaStrategy {
 public:
  explicit ReplicaStrategy(std::shared_ptr<tasks::Model> model) : model_(std::move(model)) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model_->parameters()) broadcast(parameter.detach(), 0);
    send_buffers();
  }

  torch::Tensor training_forward(const tasks::Input& input) {
    send_buffers();
    return model_->forward(input);
  }

  void backward(const torch::Tensor& loss) {
    loss.backward();
    const torch::NoGradGuard no_grad;
    std::vector<Work> sent;
    for (const auto& parameter : model_->parameters()) {
      const auto& grad = parameter.grad();
      if (grad.defined()) sent.push_back(all_reduce_async(grad, ReduceOp::SUM));
    }
    for (auto& work : sent) work.wait();
    for (const auto& parameter : model_->parameters()) {
      if (parameter.grad().defined()) parameter.grad().div_(get_world_size());
    }
  }

 private:
  void send_buffers() {
    const torch::NoGradGuard no_grad;
    for (const auto& buffer : model_->buffers()) broadcast(buffer, 0);
  }

  std::shared_ptr<tasks::Model> model_;
};

struct DataModule {
  DataModule(const tasks::Task& task, const tasks::Options& options)
      : train_set(task.dataset("train")),
        train_sampler(*train_set.size(),
                      {.shuffle = true, .seed = options.seed, .drop_last = true}),
        train(data::make_data_loader(
            train_set, train_sampler,
            data::DataLoaderOptions(options.batch_size).drop_last(true))),
        valid(each_once(task.dataset("validation"), options)),
        test(each_once(task.dataset("test"), options)) {}

  static std::unique_ptr<Loader> each_once(const tasks::Dataset& set,
                                           const tasks::Options& options) {
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  }

  tasks::Dataset train_set;
  DistributedSampler train_sampler;
  std::unique_ptr<Loader> train, valid, test;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  DataModule datamodule(*task, options);

  const auto model = task->make_model();
  model->to(world.device);
  ReplicaStrategy strategy(model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *datamodule.train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto fit = [&] {
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *datamodule.train) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(strategy.training_forward(input), target);
      strategy.backward(loss.mean());
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };
  const auto validate = [&](Loader& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    datamodule.train_sampler.set_epoch(epoch);
    const auto trained = fit();
    const auto valid = validate(*datamodule.valid);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = validate(*datamodule.test);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
