// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Batches of the samples that a sampler gives, without a data loader.
class Stream {
 public:
  Stream(tasks::Dataset samples, DistributedSampler sampler, int64_t batch_size)
      : samples_(std::move(samples)), sampler_(std::move(sampler)), batch_size_(batch_size) {}

  void rewind() { sampler_.reset(); }

  std::optional<tasks::Batch> next() {
    const auto indices = sampler_.next(static_cast<size_t>(batch_size_));
    if (!indices) return std::nullopt;
    return samples_.get_batch(*indices);
  }

 private:
  tasks::Dataset samples_;
  DistributedSampler sampler_;
  int64_t batch_size_;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

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

  Stream train_stream(train_set, train_sampler, options.batch_size);
  Stream valid_stream(valid_set, valid_sampler, options.batch_size);
  Stream test_stream(test_set, test_sampler, options.batch_size);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&, device = device](Stream& stream) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (stream.rewind(); const auto batch = stream.next();) {
      const auto [input, target] = batch->to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    train_stream.rewind();
    auto totals = task->no_totals(device);
    while (const auto batch = train_stream.next()) {
      const auto loss = train_step(*task, model, *optimizer, *batch, device);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(valid_stream);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_stream);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
