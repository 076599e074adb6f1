// Step 06 with plug-ins for all that is said and kept.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

struct Results {
  int64_t epoch = 0, epochs = 0;
  tasks::Score trained, valid, best, test;
  bool improved = false;
};

struct Plugin {
  virtual ~Plugin() = default;
  virtual void after_epoch(const Results&) {}
  virtual void after_all(const Results&) {}
};

class Speaker : public Plugin {
 public:
  explicit Speaker(const tasks::Task& task) : task_(task) {}
  void after_epoch(const Results& r) override {
    print0("epoch {}/{}: training loss {}, validation loss {}", r.epoch, r.epochs,
           task_.format(r.trained), task_.format(r.valid));
  }
  void after_all(const Results& r) override {
    print0("best validation loss: {}", task_.describe(r.best));
    print0("test loss: {}", task_.describe(r.test));
  }

 private:
  const tasks::Task& task_;
};

class Keeper : public Plugin {
 public:
  Keeper(const torch::nn::Module& model, std::filesystem::path folder)
      : model_(model), folder_(std::move(folder)) {}
  void after_epoch(const Results& r) override {
    if (r.improved) save0(model_, folder_ / "model-best.safetensors");
  }
  void after_all(const Results&) override { save0(model_, folder_ / "model-final.safetensors"); }

 private:
  const torch::nn::Module& model_;
  std::filesystem::path folder_;
};

class Farewell : public Plugin {
 public:
  void after_all(const Results&) override { destroy_process_group(); }
};

/// All that the ranks do together.
class Engine {
 public:
  using Model = DistributedDataParallel<tasks::Model>;
  Engine(const tasks::Task& task, const tasks::Options& options, torch::Device device)
      : task_(task),
        options_(options),
        device_(device),
        train_set_(task.dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        model_(wrapped(task, device)),
        optimizer_(task.make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task.make_schedule(*optimizer_, progress_.total_steps())) {}

  const Model& model() const { return model_; }
  tasks::Progress& progress() { return progress_; }

  tasks::Score train(int64_t epoch) {
    sampler_.set_epoch(epoch);
    model_->train();
    const auto loader = data::make_data_loader(
        train_set_, sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_.loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals);
    return task_.score(totals);
  }

  tasks::Score evaluate(const char* split) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto set = task_.dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    all_reduce(totals);
    return task_.score(totals);
  }

 private:
  static Model wrapped(const tasks::Task& task, torch::Device device) {
    auto module = task.make_model();
    module->to(device);
    return Model(module);
  }

  const tasks::Task& task_;
  const tasks::Options& options_;
  torch::Device device_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  Model model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  Engine engine(*task, options, world.device);

  // What is said and written, and how the run ends, is rank 0's business.
  std::vector<std::unique_ptr<Plugin>> plugins;
  if (world.rank == 0) {
    plugins.push_back(std::make_unique<Speaker>(*task));
    plugins.push_back(std::make_unique<Keeper>(*engine.model(), options.output));
    plugins.push_back(std::make_unique<Farewell>());
  }

  Results results{.epochs = options.epochs};
  while (results.epoch < options.epochs && !engine.progress().finished()) {
    results.trained = engine.train(results.epoch++);
    results.valid = engine.evaluate("validation");
    engine.progress().report(results.trained, results.valid);
    results.improved = results.valid < results.best;
    if (results.improved) results.best = results.valid;
    for (auto& plugin : plugins) plugin->after_epoch(results);
  }
  results.test = engine.evaluate("test");
  engine.progress().report(results.test);
  for (auto& plugin : plugins) plugin->after_all(results);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
