// Step 05 with a meter that shows the ranks' totals side by side, and adds them up itself.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Adds up this rank's losses; gather() makes a table of all ranks' totals, a row each. What was
/// added up stays, so that it may be asked for at any time, by all ranks.
class Meter {
 public:
  Meter(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}

  void reset() { totals_.zero_(); }
  void add(const tasks::Loss& loss) { totals_ += loss.totals(); }
  const torch::Tensor& gather() {
    table_ = all_gather(totals_);
    return table_;
  }
  /// Of the last table: over all ranks, and of one.
  tasks::Score overall() const { return task_.score(table_.sum(0)); }
  tasks::Score of(int64_t rank) const { return task_.score(table_[rank]); }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_, table_;
};

struct Callback {
  virtual ~Callback() = default;
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  virtual void on_validated(int64_t /*epoch*/, const tasks::Score& /*trained*/,
                            const tasks::Score& /*valid*/) {}
};

struct Shuffler : Callback {
  DistributedSampler sampler;
  explicit Shuffler(const DistributedSampler& s) : sampler(s) {}  // copies share their epoch
  void on_epoch_begin(int64_t epoch) override { sampler.set_epoch(epoch); }
};

struct Printer : Callback {
  const tasks::Task& task;
  int64_t epochs;
  Printer(const tasks::Task& t, int64_t e) : task(t), epochs(e) {}
  void on_validated(int64_t epoch, const tasks::Score& trained,
                    const tasks::Score& valid) override {
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, epochs,
                 task.format(trained), task.format(valid));
  }
};

struct Reporter : Callback {
  tasks::Progress& progress;
  explicit Reporter(tasks::Progress& p) : progress(p) {}
  void on_validated(int64_t, const tasks::Score& trained, const tasks::Score& valid) override {
    progress.report(trained, valid);
  }
};

template <typename Save>
struct KeepBest : Callback {
  Save save;
  tasks::Score best;
  explicit KeepBest(Save s) : save(std::move(s)) {}
  void on_validated(int64_t, const tasks::Score&, const tasks::Score& valid) override {
    if (!(valid < best)) return;
    best = valid;
    save();
  }
};

/// A pass over a split without training, and how far the ranks are apart.
class Evaluator {
 public:
  Evaluator(const tasks::Task& task, torch::Device device)
      : task_(task), device_(device), meter_(task, device) {}

  tasks::Score operator()(auto& model, auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    meter_.reset();
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      meter_.add(task_.loss(model->forward(input), target));
    }
    const auto ranks = meter_.gather().size(0);
    worst_rank_ = 0;
    for (int64_t rank = 1; rank < ranks; ++rank) {
      if (meter_.of(worst_rank_) < meter_.of(rank)) worst_rank_ = rank;
    }
    return meter_.overall();
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  Meter meter_;
  int64_t worst_rank_ = 0;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  const DistributedSampler sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto held_out = [&](const tasks::Dataset& set) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = held_out(task->dataset("validation"));
  auto test_loader = held_out(task->dataset("test"));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Shuffler shuffler(sampler);
  Reporter reporter(progress);
  Printer printer(*task, options.epochs);
  KeepBest keep([&] { torch::save(model, options.output / "model-best.pt"); });
  const std::vector<Callback*> callbacks{&shuffler, &reporter, &printer, &keep};

  Meter training(*task, device);
  Evaluator evaluate(*task, device);
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    for (auto* callback : callbacks) callback->on_epoch_begin(epoch);
    model->train();
    training.reset();
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      training.add(loss);
      if (!progress.step(loss)) break;
    }
    training.gather();
    const auto valid = evaluate(model, *valid_loader);
    for (auto* callback : callbacks) callback->on_validated(epoch, training.overall(), valid);
  }
  const auto test = evaluate(model, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(keep.best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
