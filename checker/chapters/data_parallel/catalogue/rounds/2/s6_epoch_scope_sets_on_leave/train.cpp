// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The epochs of a run. Each one lives as long as its Scope; when that ends, the sampler moves on,
// so that no way out of an epoch can forget it.
class Epochs {
 public:
  Epochs(const tasks::Options& options, const tasks::Progress& progress,
         DistributedSampler& sampler)
      : count_(options.epochs), progress_(progress), sampler_(sampler) {}

  class Scope {
   public:
    Scope(DistributedSampler& sampler, int64_t number) : sampler_(sampler), number_(number) {}
    ~Scope() { sampler_.set_epoch(static_cast<uint64_t>(number_)); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    int64_t number() const { return number_; }

   private:
    DistributedSampler& sampler_;
    int64_t number_;
  };

  template <typename Body>
  void for_each(Body body) {
    for (int64_t number = 0; number < count_ && !progress_.finished(); ++number) {
      const Scope epoch(sampler_, number);
      body(epoch.number());
    }
  }

 private:
  int64_t count_;
  const tasks::Progress& progress_;
  DistributedSampler& sampler_;
};

struct Trainer {
  const tasks::Task& task;
  torch::Device device;

  tasks::Score train(auto& model, auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model->train();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      optimizer.zero_grad();
      const auto loss = task.loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return summed(totals);
  }

  tasks::Score evaluate(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return summed(totals);
  }

 private:
  tasks::Score summed(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
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

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Trainer trainer{*task, device};
  tasks::Score best;
  Epochs(options, progress, train_sampler).for_each([&](int64_t epoch) {
    const auto trained = trainer.train(model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = trainer.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  });

  const auto test = trainer.evaluate(model, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
