// Evaluation in rounds: in each round every rank makes one forward pass, also when the split has no
// sample left for it. The samples of a round are dealt out here, without a loader.
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;
using std::size_t;

class RoundBasedEvaluation {
 public:
  RoundBasedEvaluation(const tasks::Task& task, const char* split, int64_t batch_size)
      : task_(task), data_(task.dataset(split)), batch_(static_cast<size_t>(batch_size)) {}

  template <typename Model>
  tasks::Score operator()(Model& model, torch::Device device) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const size_t total = *data_.size(), world = du::get_world_size();
    const size_t rounds = (total + world * batch_ - 1) / (world * batch_);
    auto totals = task_.no_totals(device);
    for (size_t round = 0; round < rounds; ++round) {
      const auto mine = part_of(round, total, world);
      const bool idle = mine.empty();
      const auto batch =
          data_.get_batch(idle ? std::vector<size_t>{total - 1} : mine).to(device);
      const auto output = model->forward(batch.input);
      if (!idle) totals += task_.loss(output, batch.target).totals();
    }
    du::all_reduce(totals, du::ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  // Neighbouring samples: this rank's from the round's piece of the split.
  std::vector<size_t> part_of(size_t round, size_t total, size_t world) const {
    const size_t begin = std::min(total, (round * world + du::get_rank()) * batch_);
    const size_t end = std::min(total, begin + batch_);
    std::vector<size_t> indices(end - begin);
    std::iota(indices.begin(), indices.end(), begin);
    return indices;
  }

  const tasks::Task& task_;
  tasks::Dataset data_;
  size_t batch_;
};

template <typename Model, typename Loader>
tasks::Score teach(const tasks::Task& task, Model& model, Loader& loader,
                   torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                   torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& raw) {
      const auto ready = raw.to(device);
      optimizer.zero_grad();
      const auto value = task.loss(model->forward(ready.input), ready.target);
      value.mean().backward();
      optimizer.step();
      return value;
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  du::all_reduce(totals, du::ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      du::setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  du::DistributedSampler sampler(*train_set.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = torch::data::make_data_loader(
      train_set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  RoundBasedEvaluation validate(*task, "validation", options.batch_size);
  RoundBasedEvaluation examine(*task, "test", options.batch_size);

  const auto inner = task->make_model();
  inner->to(device);
  const auto outer = du::FullyShardedDataParallel(inner, {.units = inner->blocks()});
  const auto optimizer = task->make_optimizer(outer->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto taught = teach(*task, outer, *loader, *optimizer, *schedule, device, progress);
    const auto valid = validate(outer, device);
    progress.report(taught, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(taught), task->format(valid));
    if (valid < best) {
      best = valid;
      du::save0(*outer, options.output / "model-best.safetensors");
    }
  }
  const auto test = examine(outer, device);
  progress.report(test);
  du::print0("best validation loss: {}", task->describe(best));
  du::print0("test loss: {}", task->describe(test));
  du::save0(*outer, options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
