// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A training epoch as a machine of few states.
template <typename Model, typename Loader>
class TrainingEpoch {
 public:
  TrainingEpoch(const tasks::Task& task, const Model& model, Loader& loader,
                torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                tasks::Progress& progress, torch::Device device)
      : task_(task),
        model_(model),
        loader_(loader),
        optimizer_(optimizer),
        schedule_(schedule),
        progress_(progress),
        device_(device),
        totals_(task.no_totals(device)) {}

  tasks::Score run() {
    model_->train();
    auto batch = loader_.begin();
    auto state = State::fetching;
    while (state != State::over) {
      switch (state) {
        case State::fetching:
          state = batch == loader_.end() ? State::summing : State::stepping;
          break;
        case State::stepping:
          state = step(*batch) ? State::moving : State::over;
          break;
        case State::moving:
          ++batch;
          state = State::fetching;
          break;
        case State::summing:
          all_reduce(totals_, ReduceOp::SUM);
          state = State::over;
          break;
        case State::over:
          break;
      }
    }
    return task_.score(totals_);
  }

 private:
  enum class State { fetching, stepping, moving, summing, over };

  // False when the run has taken all its steps.
  bool step(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    optimizer_.zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_.step();
    schedule_.step();
    totals_ += loss.totals();
    return progress_.step(loss);
  }

  const tasks::Task& task_;
  const Model& model_;
  Loader& loader_;
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  tasks::Progress& progress_;
  torch::Device device_;
  torch::Tensor totals_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
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
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        TrainingEpoch(*task, model, *train_loader, *optimizer, *schedule, progress, device).run();
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
