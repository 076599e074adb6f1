// Step 04 with callbacks, as in the frameworks.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

struct Callback {
  virtual ~Callback() = default;
  virtual void on_epoch_start(int64_t /*epoch*/) {}
  virtual void on_epoch_end(int64_t /*epoch*/) {}
};

/// A new order in every epoch.
class Reshuffle : public Callback {
 public:
  explicit Reshuffle(DistributedSampler& sampler) : sampler_(sampler) {}
  void on_epoch_start(int64_t epoch) override { sampler_.set_epoch(epoch); }

 private:
  DistributedSampler& sampler_;
};

/// Remembers how long epochs took.
class Stopwatch : public Callback {
 public:
  void on_epoch_start(int64_t) override { begin_ = std::chrono::steady_clock::now(); }
  void on_epoch_end(int64_t) override {
    seconds_.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  }

 private:
  std::chrono::steady_clock::time_point begin_;
  std::vector<double> seconds_;
};

class Trainer {
 public:
  Trainer(const tasks::Task& task, const tasks::Options& options, const World& world)
      : task_(task), options_(options), world_(world) {}

  /// Callbacks are bookkeeping, for which one rank is enough.
  template <typename C, typename... Args>
  void add(Args&&... args) {
    if (world_.rank != 0) return;
    callbacks_.push_back(std::make_unique<C>(std::forward<Args>(args)...));
  }

  void run(auto& train_loader, auto& valid_loader, auto& test_loader, size_t train_size) {
    const auto module = task_.make_model();
    module->to(world_.device);
    const auto model = DistributedDataParallel(module);
    const auto optimizer = task_.make_optimizer(model->parameters());
    tasks::Progress progress(options_, train_size);
    const auto schedule = task_.make_schedule(*optimizer, progress.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      for (auto& callback : callbacks_) callback->on_epoch_start(epoch);
      model->train();
      const auto trained = over(train_loader, [&](const tasks::Batch& batch) {
        optimizer->zero_grad();
        const auto loss = task_.loss(model->forward(batch.input), batch.target);
        loss.mean().backward();
        optimizer->step();
        schedule->step();
        return std::pair(loss.totals(), progress.step(loss));
      });
      const auto valid = evaluate(model, valid_loader);
      for (auto& callback : callbacks_) callback->on_epoch_end(epoch);
      progress.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_.format(trained), task_.format(valid));
      if (valid < best) {
        best = valid;
        torch::save(model, options_.output / "model-best.pt");
      }
    }
    const auto test = evaluate(model, test_loader);
    progress.report(test);
    fmt::println("best validation loss: {}", task_.describe(best));
    fmt::println("test loss: {}", task_.describe(test));
    torch::save(model, options_.output / "model-final.pt");
  }

 private:
  /// body returns a batch's totals, and whether to go on.
  tasks::Score over(auto& loader, auto body) {
    auto totals = task_.no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [part, go_on] = body(batch.to(world_.device));
      totals += part;
      if (!go_on) break;
    }
    return task_.score(totals);
  }

  tasks::Score evaluate(auto& model, auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return over(loader, [&](const tasks::Batch& batch) {
      return std::pair(task_.loss(model->forward(batch.input), batch.target).totals(), true);
    });
  }

  const tasks::Task& task_;
  const tasks::Options& options_;
  World world_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto held_out = [&](const char* split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = held_out("validation");
  auto test_loader = held_out("test");

  Trainer trainer(*task, options, world);
  trainer.add<Reshuffle>(sampler);
  trainer.add<Stopwatch>();
  trainer.run(*train_loader, *valid_loader, *test_loader, *train_set.size());
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
