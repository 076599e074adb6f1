#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Writes on rank 0; nobody is to go on before the file is complete.
template <class M>
void keep(const M& model, const std::filesystem::path& path) {
  if (get_rank() == 0) {
    save0(*model, path);
    barrier();
  }
}

// The better of what was and what is.
struct Champion {
  tasks::Score score;
  bool beaten_by(const tasks::Score& other) {
    if (!(other < score)) return false;
    score = other;
    return true;
  }
};

class Dealt {
 public:
  Dealt(const tasks::Task& task, const std::string& split, const tasks::Options& options)
      : set_(task.dataset(split)), whole_(split == "train"), size_(options.batch_size),
        sampler_(*set_.size(), whole_ ? DistributedSamplerOptions{.shuffle = true, .seed = options.seed, .drop_last = true}
                                      : DistributedSamplerOptions{.shuffle = false, .pad = false}) {}
  size_t samples() const { return *set_.size(); }
  template <class Visit>
  void each(int64_t epoch, Visit visit) {
    sampler_.set_epoch(epoch);
    sampler_.reset();
    while (const auto indices = sampler_.next(size_)) {
      if (whole_ && indices->size() < size_) return;
      if (!visit(set_.get_batch(*indices))) return;
    }
  }

 private:
  tasks::Dataset set_;
  bool whole_;
  size_t size_;
  DistributedSampler sampler_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  Dealt train(*task, "train", options), valid(*task, "validation", options), test(*task, "test", options);
  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, train.samples());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](int64_t epoch) {
    model->train();
    auto totals = task->no_totals(world.device);
    train.each(epoch, [&](const tasks::Batch& batch) {
      const auto here = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(here.input), here.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto evaluate = [&](Dealt& part) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    part.each(0, [&](const tasks::Batch& batch) {
      const auto here = batch.to(world.device);
      totals += task->loss(model->forward(here.input), here.target).totals();
      return true;
    });
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };

  Champion champion;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = learn(epoch);
    const auto seen = evaluate(valid);
    progress.report(trained, seen);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(seen));
    if (champion.beaten_by(seen)) keep(model, options.output / "model-best.safetensors");
  }
  const auto tested = evaluate(test);
  progress.report(tested);
  print0("best validation loss: {}", task->describe(champion.score));
  print0("test loss: {}", task->describe(tested));
  keep(model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
