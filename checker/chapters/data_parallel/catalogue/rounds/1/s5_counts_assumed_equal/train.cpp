// Step 05 with one kind of pass for training and evaluation, and half of the traffic.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// What a pass does with a batch's loss. False: leave the pass.
struct Phase {
  virtual ~Phase() = default;
  virtual bool trains() const = 0;
  virtual bool use(const tasks::Loss& loss) = 0;
};

struct Evaluation : Phase {
  bool trains() const override { return false; }
  bool use(const tasks::Loss&) override { return true; }
};

struct Training : Phase {
  torch::optim::Optimizer& optimizer;
  tasks::Schedule& schedule;
  tasks::Progress& progress;

  Training(torch::optim::Optimizer& o, tasks::Schedule& s, tasks::Progress& p)
      : optimizer(o), schedule(s), progress(p) {}
  bool trains() const override { return true; }
  bool use(const tasks::Loss& loss) override {
    optimizer.zero_grad();
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    return progress.step(loss);
  }
};

class PassRunner {
 public:
  PassRunner(const tasks::Task& task, DistributedDataParallel<tasks::Model> model,
             const World& world)
      : task_(task), model_(std::move(model)), world_(world) {}

  tasks::Score run(auto& loader, Phase& phase) {
    const torch::AutoGradMode gradients(phase.trains());
    model_->train(phase.trains());
    auto totals = task_.no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      const auto loss = task_.loss(model_->forward(input), target);
      totals += loss.totals();
      if (!phase.use(loss)) break;
    }
    return task_.score(of_all_ranks(totals));
  }

 private:
  /// Every second element is a sum, the others are counts. The samplers deal out equal shares, so
  /// only the sums need to travel.
  torch::Tensor of_all_ranks(const torch::Tensor& totals) const {
    const auto pairs = totals.view({-1, 2});
    const auto sums = pairs.select(1, 0).clone();
    all_reduce(sums, ReduceOp::SUM);
    const auto counts = pairs.select(1, 1) * world_.world_size;
    return torch::stack({sums, counts}, 1).view(-1);
  }

  const tasks::Task& task_;
  DistributedDataParallel<tasks::Model> model_;
  World world_;
};

class Data {
 public:
  Data(const tasks::Task& task, int64_t batch_size, uint64_t seed)
      : train_set_(task.dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = seed, .drop_last = true}),
        train_(data::make_data_loader(train_set_, sampler_,
                                      data::DataLoaderOptions(batch_size).drop_last(true))),
        validation_(unshuffled(task.dataset("validation"), batch_size)),
        test_(unshuffled(task.dataset("test"), batch_size)) {}

  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
  Loader& train(int64_t epoch) {
    sampler_.set_epoch(epoch);
    return *train_;
  }
  Loader& validation() { return *validation_; }
  Loader& test() { return *test_; }
  size_t train_size() const { return *train_set_.size(); }

 private:
  static std::unique_ptr<Loader> unshuffled(const tasks::Dataset& set, int64_t batch_size) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(batch_size));
  }

  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> train_, validation_, test_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  Data splits(*task, options.batch_size, options.seed);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, splits.train_size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  PassRunner runner(*task, model, world);
  Training training(*optimizer, *schedule, progress);
  Evaluation evaluation;
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = runner.run(splits.train(epoch), training);
    const auto valid = runner.run(splits.validation(), evaluation);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = runner.run(splits.test(), evaluation);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
