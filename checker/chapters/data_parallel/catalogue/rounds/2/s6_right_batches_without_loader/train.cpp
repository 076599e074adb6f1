// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// This rank's batches of a split, fetched one by one on the device. No loader in between: the
// sampler says which samples, the data set fetches them.
class Feed {
 public:
  enum class Tail { keep, drop };

  Feed(tasks::Dataset set, const DistributedSamplerOptions& share, int64_t batch_size, Tail tail,
       torch::Device device)
      : set_(std::move(set)),
        sampler_(*set_.size(), share),
        batch_size_(static_cast<size_t>(batch_size)),
        tail_(tail),
        device_(device) {}

  size_t samples() const { return *set_.size(); }

  void rewind(int64_t epoch = 0) {
    sampler_.set_epoch(static_cast<uint64_t>(epoch));
    sampler_.reset();
  }

  std::optional<tasks::Batch> next() {
    const auto indices = sampler_.next(batch_size_);
    if (!indices) return std::nullopt;
    if (tail_ == Tail::drop && indices->size() < batch_size_) return std::nullopt;
    return set_.get_batch(*indices).to(device_);
  }

 private:
  tasks::Dataset set_;
  DistributedSampler sampler_;
  size_t batch_size_;
  Tail tail_;
  torch::Device device_;
};

class Session {
 public:
  explicit Session(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() { destroy_process_group(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  torch::Device device() const { return world_.device; }

 private:
  World world_;
};

tasks::Score score_of_all(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score train(const tasks::Task& task, auto& model, Feed& feed, auto& optimizer,
                   tasks::Schedule& schedule, torch::Tensor totals, tasks::Progress& progress) {
  model->train();
  while (const auto batch = feed.next()) {
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(batch->input), batch->target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return score_of_all(task, totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, Feed& feed, torch::Tensor totals) {
  const torch::NoGradGuard no_grad;
  model->eval();
  feed.rewind();
  while (const auto batch = feed.next()) {
    totals += task.loss(model->forward(batch->input), batch->target).totals();
  }
  return score_of_all(task, totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Session session(options);
  const auto device = session.device();
  const auto task = tasks::make_task(options);

  Feed training(task->dataset("train"),
                {.shuffle = true, .seed = options.seed, .drop_last = true}, options.batch_size,
                Feed::Tail::drop, device);
  const DistributedSamplerOptions once_each{.shuffle = false, .pad = false};
  Feed validation(task->dataset("validation"), once_each, options.batch_size, Feed::Tail::keep,
                  device);
  Feed testing(task->dataset("test"), once_each, options.batch_size, Feed::Tail::keep, device);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, training.samples());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    training.rewind(epoch);
    const auto trained = train(*task, model, training, *optimizer, *schedule,
                               task->no_totals(device), progress);
    const auto valid = evaluate(*task, model, validation, task->no_totals(device));
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, testing, task->no_totals(device));
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
