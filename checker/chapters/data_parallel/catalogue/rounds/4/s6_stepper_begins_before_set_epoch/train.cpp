// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

tasks::Score over_ranks(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

// Training as a function that can be called again and again, as a coroutine would be: each call
// takes one optimizer step and keeps its place.
template <typename Model>
class Stepper {
 public:
  Stepper(const tasks::Task& task, const Model& model, torch::optim::Optimizer& optimizer,
          tasks::Schedule& schedule, tasks::Progress& progress, Loader& loader,
          DistributedSampler& sampler, torch::Device device)
      : task_(task), model_(model), optimizer_(optimizer), schedule_(schedule),
        progress_(progress), loader_(loader), sampler_(sampler), device_(device),
        totals_(task.no_totals(device)), place_(loader.begin()) {
    sampler_.set_epoch(0);
  }

  // Takes a step. False where an epoch is over, or the run.
  bool operator()() {
    if (place_ == loader_.end()) return false;
    const auto [input, target] = place_->to(device_);
    optimizer_.zero_grad();
    const auto loss = task_.loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_.step();
    schedule_.step();
    totals_ += loss.totals();
    if (!progress_.step(loss)) return false;
    ++place_;
    return true;
  }

  // Closes the epoch, gets ready for the next one, and returns the score.
  tasks::Score next_epoch() {
    const auto score = over_ranks(task_, totals_);
    totals_ = task_.no_totals(device_);
    place_ = loader_.begin();
    sampler_.set_epoch(++epoch_);
    return score;
  }

 private:
  const tasks::Task& task_;
  const Model& model_;
  torch::optim::Optimizer& optimizer_;
  tasks::Schedule& schedule_;
  tasks::Progress& progress_;
  Loader& loader_;
  DistributedSampler& sampler_;
  torch::Device device_;
  torch::Tensor totals_;
  data::Iterator<tasks::Batch> place_;
  uint64_t epoch_ = 0;
};

tasks::Score evaluate(const tasks::Task& task, const auto& model, Loader& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return over_ranks(task, totals);
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

  Stepper step(*task, model, *optimizer, *schedule, progress, *train_loader, train_sampler,
               device);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    while (step()) {
    }
    const auto trained = step.next_epoch();
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
