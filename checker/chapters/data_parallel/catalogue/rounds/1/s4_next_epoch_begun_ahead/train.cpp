// Step 04 with a stream of batches that is always one batch ahead.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Gives the batches of one epoch after another, the next of which is always fetched already, also
/// across the end of an epoch: its first batch is there when evaluation is over.
template <typename Loader>
class Stream {
 public:
  explicit Stream(Loader& loader) : loader_(loader), at_(loader.end()) { start(); }

  /// Nothing: the epoch is over. Asked again, it gives the first batch of the next one.
  std::optional<tasks::Batch> next() {
    if (!ahead_) {
      start();
      return std::nullopt;
    }
    auto batch = std::move(ahead_);
    ++at_;
    fetch();
    return batch;
  }

 private:
  void start() {
    at_ = loader_.begin();
    fetch();
  }
  void fetch() {
    ahead_.reset();
    if (at_ != loader_.end()) ahead_ = *at_;
  }

  Loader& loader_;
  decltype(std::declval<Loader&>().begin()) at_;
  std::optional<tasks::Batch> ahead_;
};

/// One epoch of training, or a pass over a split, with the model and all that belongs to it.
class Learner {
 public:
  Learner(const tasks::Task& task, torch::Device device, tasks::Progress& progress)
      : task_(task),
        device_(device),
        progress_(progress),
        model_(wrapped()),
        optimizer_(task.make_optimizer(model_->parameters())),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

  tasks::Score learn(auto& stream) {
    model_->train();
    auto totals = task_.no_totals(device_);
    while (auto batch = stream.next()) {
      const auto [input, target] = batch->to(device_);
      optimizer_->zero_grad();
      const auto loss = task_.loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score judge(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return task_.score(totals);
  }

  void save(const std::filesystem::path& file) const { torch::save(model_, file.string()); }

 private:
  DistributedDataParallel<tasks::Model> wrapped() const {
    auto module = task_.make_model();
    module->to(device_);
    return DistributedDataParallel<tasks::Model>(module);
  }

  const tasks::Task& task_;
  torch::Device device_;
  tasks::Progress& progress_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto held_out = [&](const tasks::Dataset& set) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = held_out(task->dataset("validation"));
  auto test_loader = held_out(task->dataset("test"));
  Stream stream(*train_loader);

  tasks::Progress progress(options, *train_set.size());
  Learner learner(*task, device, progress);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = learner.learn(stream);
    const auto valid = learner.judge(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      learner.save(options.output / "model-best.pt");
    }
  }
  const auto test = learner.judge(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  learner.save(options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
