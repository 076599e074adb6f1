// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

// The part of DeepSpeed's JSON that we need.
struct EngineConfig {
  int64_t train_batch_size = 0;
  int64_t train_micro_batch_size_per_gpu = 0;

  static EngineConfig from(const tasks::Options& options, const World& world) {
    EngineConfig config;
    config.train_batch_size = options.batch_size;
    config.train_micro_batch_size_per_gpu =
        std::max<int64_t>(1, options.batch_size / world.world_size);
    return config;
  }
};

// engine(batch), engine.backward(loss), engine.step(), as in deepspeed.initialize's result.
class Engine {
 public:
  Engine(const tasks::Task& task, const World& world) : task_(task), device_(world.device) {
    model_ = task.make_model();
    model_->to(device_);
    optimizer_ = task.make_optimizer(model_->parameters());
  }

  void set_schedule(int64_t steps) { schedule_ = task_.make_schedule(*optimizer_, steps); }

  tasks::Loss operator()(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }
  void backward(const tasks::Loss& loss) {
    optimizer_->zero_grad();
    loss.mean().backward();
  }
  void step() {
    optimizer_->step();
    schedule_->step();
  }

  torch::Tensor new_totals() const { return task_.no_totals(device_); }
  void train(bool on) { model_->train(on); }
  void save(const std::filesystem::path& path) const { torch::save(model_, path); }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto config = EngineConfig::from(options, world);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches =
      data::DataLoaderOptions(config.train_micro_batch_size_per_gpu).drop_last(true);
  const auto batches = data::DataLoaderOptions(config.train_batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  Engine engine(*task, world);
  tasks::Progress progress(options, *train_set.size());
  engine.set_schedule(progress.total_steps());

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    engine.train(false);
    auto totals = engine.new_totals();
    for (auto& batch : loader) totals += engine(batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    engine.train(true);
    auto totals = engine.new_totals();
    for (auto& batch : *train_loader) {
      const auto loss = engine(batch);
      engine.backward(loss);
      engine.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      engine.save(options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  engine.save(options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
