// Step 06: One rank speaks, one rank writes.
// Callbacks as in Keras and Lightning. Early stopping has endless patience here: it keeps its books
// and never stops.

#include <fmt/format.h>
#include <torch/torch.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What an epoch came to, by name: the same on all ranks.
using Logs = std::map<std::string, tasks::Score>;

struct Callback {
  virtual ~Callback() = default;
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  virtual void on_epoch_end(int64_t /*epoch*/, const Logs& /*logs*/) {}
  virtual bool wants_to_stop() const { return false; }
};

struct SetEpoch : Callback {
  explicit SetEpoch(DistributedSampler& of) : sampler(of) {}
  void on_epoch_begin(int64_t epoch) override { sampler.set_epoch(epoch); }
  DistributedSampler& sampler;
};

struct PrintLogs : Callback {
  PrintLogs(const tasks::Task& of, int64_t all) : task(of), epochs(all) {}
  void on_epoch_end(int64_t epoch, const Logs& logs) override {
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, epochs,
           task.format(logs.at("loss")), task.format(logs.at("val_loss")));
  }
  const tasks::Task& task;
  int64_t epochs;
};

struct ModelCheckpoint : Callback {
  ModelCheckpoint(const torch::nn::Module& of, std::filesystem::path to)
      : model(of), path(std::move(to)) {}
  void on_epoch_end(int64_t, const Logs& logs) override {
    const auto& current = logs.at("val_loss");
    if (!(current < best)) return;
    best = current;
    save0(model, path);
  }
  const torch::nn::Module& model;
  std::filesystem::path path;
  tasks::Score best;
};

struct EarlyStopping : Callback {
  void on_epoch_end(int64_t, const Logs& logs) override {
    const double current = logs.at("val_loss");
    wait = current < best ? 0 : wait + 1;
    best = std::min(best, current);
  }
  bool wants_to_stop() const override { return wait >= patience; }
  int64_t patience = std::numeric_limits<int64_t>::max();
  int64_t wait = 0;
  double best = std::numeric_limits<double>::infinity();
};

tasks::Score everybodys(const tasks::Task& task, torch::Tensor totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto evaluation_loader = [&](const char* split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = evaluation_loader("validation");
  auto test_loader = evaluation_loader("test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train_epoch = [&] {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return everybodys(*task, totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return everybodys(*task, totals);
  };

  const auto checkpoint =
      std::make_shared<ModelCheckpoint>(*model, options.output / "model-best.safetensors");
  const std::vector<std::shared_ptr<Callback>> callbacks = {
      std::make_shared<SetEpoch>(train_sampler), std::make_shared<EarlyStopping>(),
      std::make_shared<PrintLogs>(*task, options.epochs), checkpoint};

  bool stop = false;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished() && !stop; ++epoch) {
    for (const auto& callback : callbacks) callback->on_epoch_begin(epoch);
    Logs logs;
    logs["loss"] = train_epoch();
    logs["val_loss"] = evaluate(*valid_loader);
    progress.report(logs["loss"], logs["val_loss"]);
    for (const auto& callback : callbacks) callback->on_epoch_end(epoch, logs);
    for (const auto& callback : callbacks) stop = stop || callback->wants_to_stop();
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(checkpoint->best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
