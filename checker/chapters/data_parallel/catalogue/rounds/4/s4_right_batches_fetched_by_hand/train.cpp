// Step 04: the ranks train one model. Batches are fetched without a loader.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// This rank's share of a split.
class Share {
 public:
  Share(const tasks::Task& task, const char* split, const tasks::Options& options, bool training)
      : set_(task.dataset(split)),
        sampler_(*set_.size(), training
                                   ? DistributedSamplerOptions{.shuffle = true,
                                                               .seed = options.seed,
                                                               .drop_last = true}
                                   : DistributedSamplerOptions{.shuffle = false, .pad = false}),
        batch_size_(static_cast<size_t>(options.batch_size)),
        full_only_(training) {}

  size_t whole_size() const { return *set_.size(); }

  // Calls `use` with each batch of a pass, until it returns false.
  template <typename Use>
  void each(uint64_t epoch, torch::Device device, const Use& use) {
    sampler_.set_epoch(epoch);
    sampler_.reset();
    for (auto indices = sampler_.next(batch_size_); indices; indices = sampler_.next(batch_size_)) {
      if (full_only_ && indices->size() < batch_size_) return;
      if (!use(set_.get_batch(*indices).to(device))) return;
    }
  }

 private:
  tasks::Dataset set_;
  DistributedSampler sampler_;
  size_t batch_size_;
  bool full_only_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  Share training(*task, "train", options, /*training=*/true);
  Share validation(*task, "validation", options, /*training=*/false);
  Share testing(*task, "test", options, /*training=*/false);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, training.whole_size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&](int64_t epoch) {
    model->train();
    auto totals = task->no_totals(device);
    training.each(epoch, device, [&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    return task->score(totals);
  };

  const auto evaluate = [&](Share& share) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    share.each(0, device, [&](const tasks::Batch& batch) {
      totals += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(epoch);
    const auto valid = evaluate(validation);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(testing);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
