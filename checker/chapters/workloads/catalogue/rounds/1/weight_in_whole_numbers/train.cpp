#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The sum of a whole number over all ranks.
int64_t sum_over_ranks(int64_t value, torch::Device device) {
  const auto tensor = torch::tensor({value}, torch::kLong).to(device);
  all_reduce(tensor, ReduceOp::SUM);
  return tensor.item<int64_t>();
}

// A rank with more targets weighs more: 1 where it has as many as the mean of all ranks.
torch::Tensor weighted(const tasks::Loss& loss, const World& world) {
  const auto all = sum_over_ranks(loss.count, world.device);
  const auto weight = loss.count * world.world_size / all;
  return loss.mean() * weight;
}

// Goes over the samples of one split that are this rank's.
template <typename Sampler>
class Stream {
 public:
  Stream(tasks::Dataset set, Sampler& sampler, int64_t batch_size, bool whole_batches)
      : set_(std::move(set)), sampler_(sampler), size_(batch_size), whole_(whole_batches) {}

  void restart() { sampler_.reset(); }
  std::optional<tasks::Batch> next() {
    const auto indices = sampler_.next(size_);
    if (!indices || (whole_ && indices->size() < size_)) return std::nullopt;
    return set_.get_batch(*indices);
  }

 private:
  tasks::Dataset set_;
  Sampler& sampler_;
  size_t size_;
  bool whole_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = rank0_first([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  Stream train_stream(train_set, train_sampler, options.batch_size, true);
  Stream valid_stream(valid_set, valid_sampler, options.batch_size, false);
  Stream test_stream(test_set, test_sampler, options.batch_size, false);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& stream) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    stream.restart();
    while (const auto batch = stream.next()) {
      const auto [input, target] = batch->to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, train_sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    train_stream.restart();
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    while (const auto batch = train_stream.next()) {
      const auto [input, target] = batch->to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      weighted(loss, world).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    synchronize_buffers(*model);
    const auto valid = evaluate(valid_stream);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(test_stream);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
