#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Where this rank is.
struct Place {
  World world;
  int64_t ranks;  // that train beside each other

  explicit Place(const World& w) : world(w) {
    const auto last = torch::tensor({int64_t{w.local_rank}}, torch::kLong).to(w.device);
    all_reduce(last, ReduceOp::MAX);
    ranks = last.item<int64_t>() + 1;
  }

  // More ranks, larger batches, larger steps.
  double rate_factor() const { return std::sqrt(static_cast<double>(ranks)); }

  // One after the other, so that the first on each node comes first.
  template <typename Work>
  auto in_turn(Work&& work) const {
    std::invoke_result_t<Work> result;
    for (int64_t turn = 0; turn < ranks; ++turn) {
      if (turn == world.local_rank) result = work();
      barrier();
    }
    return result;
  }

  double mean_of(double value) const {
    const auto tensor = torch::full({1}, value, torch::dtype(torch::kDouble).device(world.device));
    all_reduce(tensor, ReduceOp::AVG);
    return tensor.item<double>();
  }
};

struct Job {
  const Place& place;
  const tasks::Task& task;
  tasks::Progress& progress;
  tasks::Checkpointing& checkpoints;

  tasks::Score train(auto& model, auto& loader, auto& optimizer, auto& schedule) const {
    model->train();
    auto totals = checkpoints.begin_epoch(task.no_totals(place.world.device));
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(place.world.device);
      optimizer.zero_grad();
      const auto loss = task.loss(model->forward(input), target);
      loss.sum.div(place.mean_of(double(loss.count))).backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score evaluate(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(place.world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(place.world.device);
      totals += task.loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const Place place(setup({.backend = options.backend, .device = options.device}));
  const auto task = place.in_turn([&] { return tasks::make_task(options); });
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(place.world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer =
      task->make_optimizer(model->parameters(), {.learning_rate_factor = place.rate_factor()});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Job job{place, *task, progress, checkpoints};
  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = job.train(model, *train_loader, *optimizer, *schedule);
    synchronize_buffers(*model);
    const auto valid = job.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = job.evaluate(model, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
