// Step 05 with a meter that knows whether it has been reduced.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Adds up losses, of this rank's batches at first and of all ranks' once somebody asks for it.
class Meter {
 public:
  Meter(const tasks::Task& task, torch::Device device)
      : task_(task), device_(device), totals_(task.no_totals(device)) {}

  void reset() { totals_ = task_.no_totals(device_); }
  void add(const tasks::Loss& loss) { totals_ += loss.totals(); }
  /// All ranks ask. Asking twice adds up once.
  tasks::Score score() {
    synchronize();
    return task_.score(totals_);
  }

 private:
  void synchronize() {
    if (synchronized_) return;
    all_reduce(totals_, ReduceOp::SUM);
    synchronized_ = true;
  }

  const tasks::Task& task_;
  torch::Device device_;
  torch::Tensor totals_;
  bool synchronized_ = false;
};

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

class Trainer {
 public:
  Trainer(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        train_(data::make_data_loader(train_set_, sampler_,
                                      data::DataLoaderOptions(options.batch_size).drop_last(true))),
        model_(prepared()),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())),
        meter_(*task_, device) {}

  void fit() {
    const auto validation = held_out("validation");
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      const auto trained = train(epoch);
      const auto valid = evaluate(*validation);
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                   task_->format(trained), task_->format(valid));
      keep_if_best(valid);
    }
  }

  void test() {
    const auto score = evaluate(*held_out("test"));
    progress_.report(score);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(score));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  DistributedDataParallel<tasks::Model> prepared() const {
    auto module = task_->make_model();
    module->to(device_);
    return DistributedDataParallel<tasks::Model>(module);
  }

  std::unique_ptr<Loader> held_out(const char* split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Score train(int64_t epoch) {
    sampler_.set_epoch(epoch);
    model_->train();
    meter_.reset();
    for (auto& batch : *train_) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      meter_.add(loss);
      if (!progress_.step(loss)) break;
    }
    return meter_.score();
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    meter_.reset();
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      meter_.add(task_->loss(model_->forward(input), target));
    }
    return meter_.score();
  }

  void keep_if_best(const tasks::Score& valid) {
    if (!(valid < best_)) return;
    best_ = valid;
    torch::save(model_, options_.output / "model-best.pt");
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> train_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  Meter meter_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Trainer trainer(options, world.device);
  trainer.fit();
  trainer.test();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
