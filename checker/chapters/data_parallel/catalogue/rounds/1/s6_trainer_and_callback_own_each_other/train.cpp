// Step 06: One rank speaks, one rank writes.
// A Trainer with callbacks that know their trainer, as in Lightning.

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

struct Trainer;

struct Callback {
  virtual ~Callback() = default;
  virtual void on_epoch_end() {}
  virtual void on_fit_end() {}
  std::shared_ptr<Trainer> trainer;  // set by Trainer::add
};

struct Trainer : std::enable_shared_from_this<Trainer> {
  explicit Trainer(const tasks::Options& of)
      : options(of), world(setup({.backend = of.backend, .device = of.device})) {}
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  // The trainer opened the process group, so it closes it as well.
  ~Trainer() { destroy_process_group(); }

  void add(std::shared_ptr<Callback> callback) {
    callback->trainer = shared_from_this();
    callbacks.push_back(std::move(callback));
  }

  void fit() {
    task = tasks::make_task(options);
    const auto train_set = task->dataset("train");
    DistributedSampler sampler(*train_set.size(),
                               {.shuffle = true, .seed = options.seed, .drop_last = true});
    auto train_loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
    auto valid_loader = evaluation_loader("validation");
    auto test_loader = evaluation_loader("test");

    const auto module = task->make_model();
    module->to(world.device);
    const auto wrapped = DistributedDataParallel(module);
    model = wrapped.ptr();
    const auto optimizer = task->make_optimizer(model->parameters());
    tasks::Progress progress(options, *train_set.size());
    const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

    for (epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task->no_totals(world.device);
      for (auto& batch : *train_loader) {
        const auto [input, target] = batch.to(world.device);
        optimizer->zero_grad();
        const auto loss = task->loss(model->forward(input), target);
        loss.mean().backward();
        optimizer->step();
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      all_reduce(totals, ReduceOp::SUM);
      trained = task->score(totals);
      valid = evaluate(*valid_loader);
      progress.report(trained, valid);
      for (const auto& callback : callbacks) callback->on_epoch_end();
    }
    test = evaluate(*test_loader);
    progress.report(test);
    for (const auto& callback : callbacks) callback->on_fit_end();
  }

  std::unique_ptr<Loader> evaluation_loader(const char* split) const {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }

  tasks::Options options;
  World world;
  std::shared_ptr<tasks::Task> task;
  std::shared_ptr<DistributedDataParallelImpl<tasks::Model>> model;
  std::vector<std::shared_ptr<Callback>> callbacks;
  int64_t epoch = 0;
  tasks::Score trained, valid, test, best;
};

// Both after the trainer, whose members they read.
struct ConsoleCallback : Callback {
  void on_epoch_end() override {
    print0("epoch {}/{}: training loss {}, validation loss {}", trainer->epoch + 1,
           trainer->options.epochs, trainer->task->format(trainer->trained),
           trainer->task->format(trainer->valid));
  }
  void on_fit_end() override {
    print0("best validation loss: {}", trainer->task->describe(trainer->best));
    print0("test loss: {}", trainer->task->describe(trainer->test));
  }
};

struct CheckpointCallback : Callback {
  void on_epoch_end() override {
    if (!(trainer->valid < trainer->best)) return;
    trainer->best = trainer->valid;
    save0(*trainer->model, trainer->options.output / "model-best.safetensors");
  }
  void on_fit_end() override {
    save0(*trainer->model, trainer->options.output / "model-final.safetensors");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto trainer = std::make_shared<Trainer>(options);
  trainer->add(std::make_shared<ConsoleCallback>());
  trainer->add(std::make_shared<CheckpointCallback>());
  trainer->fit();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
