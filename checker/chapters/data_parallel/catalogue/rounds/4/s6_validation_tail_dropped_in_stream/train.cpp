// Step 06: the finished trainer, on streams of batches instead of loaders.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

enum class Tail { keep, drop };

// This rank's share of a split, batch by batch.
class Stream {
 public:
  Stream(tasks::Dataset set, const DistributedSampler& sampler, size_t batch_size, Tail tail)
      : set_(std::move(set)), sampler_(sampler), batch_size_(batch_size), tail_(tail) {}

  // Goes back to the start, in the order of this epoch.
  Stream& rewind(uint64_t epoch = 0) {
    sampler_.set_epoch(epoch);
    sampler_.reset();
    return *this;
  }

  std::optional<tasks::Batch> next() {
    const auto indices = sampler_.next(batch_size_);
    if (!indices) return std::nullopt;
    if (tail_ == Tail::drop && indices->size() < batch_size_) return std::nullopt;
    return set_.get_batch(*indices);
  }

 private:
  tasks::Dataset set_;
  DistributedSampler sampler_;
  size_t batch_size_;
  Tail tail_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, Stream& stream, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  stream.rewind();
  auto totals = task.no_totals(device);
  while (const auto batch = stream.next()) {
    const auto [input, target] = batch->to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto size = static_cast<size_t>(options.batch_size);
  Stream train_stream(train_set, train_sampler, size, Tail::drop);
  Stream valid_stream(valid_set, valid_sampler, size, Tail::drop);
  Stream test_stream(test_set, test_sampler, size, Tail::keep);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&](int64_t epoch) {
    model->train();
    train_stream.rewind(epoch);
    auto totals = task->no_totals(device);
    while (const auto batch = train_stream.next()) {
      const auto [input, target] = batch->to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(epoch);
    const auto valid = evaluate(*task, model, valid_stream, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, test_stream, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
