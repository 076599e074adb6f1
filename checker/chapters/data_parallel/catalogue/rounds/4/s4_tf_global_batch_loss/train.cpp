// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// After tf.distribute.MultiWorkerMirroredStrategy.
class Strategy {
 public:
  explicit Strategy(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}

  int num_replicas_in_sync() const { return world_.world_size; }
  torch::Device device() const { return world_.device; }

  // Variables made here are mirrored.
  template <class Make>
  auto mirrored(Make make) const {
    const auto module = make();
    module->to(world_.device);
    return DistributedDataParallel(module);
  }

  auto distribute(const tasks::Dataset& set, DistributedSampler& sampler,
                  const data::DataLoaderOptions& batches) const {
    return data::make_data_loader(set, sampler, batches);
  }

 private:
  World world_;
};

// tf.nn.compute_average_loss: the sum over the examples of a replica, divided by the number of
// examples in the global batch.
torch::Tensor compute_average_loss(const tasks::Loss& loss, const Strategy& strategy) {
  const auto global_count = loss.count * strategy.num_replicas_in_sync();
  return loss.sum / static_cast<double>(global_count);
}

template <class Model>
class Loop {
 public:
  Loop(const Strategy& strategy, const tasks::Task& task, const Model& model,
       tasks::Progress& progress)
      : strategy_(strategy),
        task_(task),
        model_(model),
        progress_(progress),
        optimizer_(task.make_optimizer(model->parameters())),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

  tasks::Score train(auto& dataset) {
    model_->train();
    auto totals = task_.no_totals(strategy_.device());
    for (auto& batch : dataset) {
      const auto loss = train_step(batch);
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score test(auto& dataset) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(strategy_.device());
    for (auto& batch : dataset) totals += call(batch).totals();
    return task_.score(totals);
  }

 private:
  tasks::Loss call(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(strategy_.device());
    return task_.loss(model_->forward(input), target);
  }

  tasks::Loss train_step(const tasks::Batch& batch) {
    optimizer_->zero_grad();
    auto loss = call(batch);
    compute_average_loss(loss, strategy_).backward();
    optimizer_->step();
    schedule_->step();
    return loss;
  }

  const Strategy& strategy_;
  const tasks::Task& task_;
  Model model_;
  tasks::Progress& progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Strategy strategy(options);

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
  auto train_data = strategy.distribute(train_set, train_sampler, train_batches);
  auto valid_data = strategy.distribute(valid_set, valid_sampler, batches);
  auto test_data = strategy.distribute(test_set, test_sampler, batches);

  const auto model = strategy.mirrored([&] { return task->make_model(); });
  tasks::Progress progress(options, *train_set.size());
  Loop loop(strategy, *task, model, progress);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(static_cast<uint64_t>(epoch));
    const auto trained = loop.train(*train_data);
    const auto valid = loop.test(*valid_data);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = loop.test(*test_data);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
