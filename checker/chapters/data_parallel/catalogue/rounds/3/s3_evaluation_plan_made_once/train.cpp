// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Samples of an evaluation split that are this rank's: rank, rank + W, rank + 2 W, ... Making the
// list takes time for large splits, so it is made at the first call and kept.
const std::vector<size_t>& samples_of_rank(size_t split_size) {
  static const std::vector<size_t> samples = [&] {
    std::vector<size_t> list;
    const size_t stride = get_world_size();
    for (size_t i = get_rank(); i < split_size; i += stride) list.push_back(i);
    return list;
  }();
  return samples;
}

class Evaluator {
 public:
  Evaluator(const tasks::Task& task, torch::Device device, int64_t batch_size)
      : task_(task), device_(device), batch_size_(batch_size) {}

  tasks::Score operator()(auto& model, tasks::Dataset split) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    const c10::ArrayRef<size_t> samples = samples_of_rank(*split.size());
    for (size_t begin = 0; begin < samples.size(); begin += batch_size_) {
      const auto length = std::min(batch_size_, samples.size() - begin);
      const auto [input, target] = split.get_batch(samples.slice(begin, length)).to(device_);
      totals += task_.loss(model->forward(input), target).totals();
    }
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  size_t batch_size_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
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
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  const Evaluator evaluate(*task, device, options.batch_size);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(model, valid_set);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(model, test_set);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
