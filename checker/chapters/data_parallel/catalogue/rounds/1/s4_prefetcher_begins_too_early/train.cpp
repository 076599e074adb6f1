// Step 04: The ranks train one model.
// With a prefetcher as in NVIDIA's ImageNet example: the next batch is fetched ahead of time.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Holds one batch in advance, on the device already.
template <class Loader>
class DataPrefetcher {
 public:
  DataPrefetcher(Loader& loader, torch::Device device)
      : device_(device), current_(loader.begin()), end_(loader.end()) {
    preload();
  }

  // The next batch; nothing at the end of the data.
  std::optional<tasks::Batch> next() {
    auto batch = std::move(ahead_);
    ahead_.reset();
    if (batch) {
      ++current_;
      preload();
    }
    return batch;
  }

 private:
  void preload() {
    if (current_ != end_) ahead_ = (*current_).to(device_);
  }

  torch::Device device_;
  decltype(std::declval<Loader&>().begin()) current_;
  decltype(std::declval<Loader&>().end()) end_;
  std::optional<tasks::Batch> ahead_;
};

// Training data with all that belongs to it.
struct TrainData {
  TrainData(const tasks::Task& task, const tasks::Options& options)
      : set(task.dataset("train")),
        sampler(*set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        loader(data::make_data_loader(
            set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true))) {}

  tasks::Dataset set;
  DistributedSampler sampler;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader;
};

// Validation or test data, each sample once.
auto evaluation_loader(const tasks::Task& task, const tasks::Options& options, const char* split) {
  const auto set = task.dataset(split);
  const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
  return data::make_data_loader(set, sampler, data::DataLoaderOptions(options.batch_size));
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  DataPrefetcher batches(loader, device);
  while (const auto batch = batches.next()) {
    totals += task.loss(model->forward(batch->input), batch->target).totals();
  }
  return task.score(totals);
}

tasks::Score train(const tasks::Task& task, int64_t epoch, auto& model, TrainData& train_data,
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device,
                   tasks::Progress& progress) {
  // Start fetching at once, then get everything else ready.
  DataPrefetcher batches(*train_data.loader, device);
  train_data.sampler.set_epoch(epoch);
  model->train();
  auto totals = task.no_totals(device);
  while (const auto batch = batches.next()) {
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(batch->input), batch->target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  TrainData train_data(*task, options);
  const auto valid_loader = evaluation_loader(*task, options, "validation");
  const auto test_loader = evaluation_loader(*task, options, "test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_data.set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, epoch, model, train_data, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
