// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Indices = std::vector<size_t>;

// The samples of a rank: rank, rank + ranks, rank + 2 ranks, ... No sample is left out or repeated,
// so that some ranks may have one more than others.
Indices share_of(size_t rank, size_t ranks, size_t samples) {
  Indices share;
  for (size_t i = rank; i < samples; i += ranks) share.push_back(i);
  return share;
}

// The same in batches. The last one may be smaller.
std::vector<Indices> in_batches(const Indices& share, size_t batch_size) {
  std::vector<Indices> batches;
  for (size_t first = 0; first < share.size(); first += batch_size) {
    const size_t last = std::min(first + batch_size, share.size());
    batches.emplace_back(share.begin() + static_cast<std::ptrdiff_t>(first),
                         share.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return batches;
}

// A split to evaluate on, and what this rank reads of it.
class Exam {
 public:
  Exam(tasks::Dataset questions, const World& world, int64_t batch_size)
      : questions_(std::move(questions)),
        mine_(in_batches(share_of(static_cast<size_t>(world.rank),
                                  static_cast<size_t>(world.world_size), *questions_.size()),
                         static_cast<size_t>(batch_size))) {}

  tasks::Score grade(const tasks::Task& task, const auto& model, torch::Device device) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (const auto& indices : mine_) {
      const auto [input, target] = questions_.get_batch(indices).to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

 private:
  tasks::Dataset questions_;
  std::vector<Indices> mine_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  Exam validation(task->dataset("validation"), world, options.batch_size);
  Exam final_exam(task->dataset("test"), world, options.batch_size);

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](int64_t epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
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
    const auto trained = learn(epoch);
    const auto valid = validation.grade(*task, model, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = final_exam.grade(*task, model, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
