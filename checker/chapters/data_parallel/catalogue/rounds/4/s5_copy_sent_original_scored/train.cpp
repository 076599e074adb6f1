// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Net = DistributedDataParallel<tasks::Model>;
using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

// The totals of a pass while they travel. A tensor must not be touched before its collective has
// ended, so the one that travels belongs to this class alone.
class Travelling {
 public:
  explicit Travelling(torch::Tensor totals)
      : totals_(std::move(totals)),
        parcel_(totals_.clone()),
        work_(all_reduce_async(parcel_, ReduceOp::SUM)) {}

  tasks::Score arrive(const tasks::Task& task) {
    work_.wait();
    return task.score(totals_);
  }

 private:
  torch::Tensor totals_;
  torch::Tensor parcel_;
  Work work_;
};

// What a pass needs, so that tests can hand in parts of their own.
struct Bench {
  const tasks::Task& task;
  const Net& model;
  torch::Device device;

  std::pair<torch::Tensor, tasks::Target> look(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device);
    return {model->forward(input), target};
  }
};

Travelling train_pass(const Bench& bench, Loader& loader, torch::optim::Optimizer& optimizer,
                      tasks::Schedule& schedule, tasks::Progress& progress) {
  bench.model->train();
  auto totals = bench.task.no_totals(bench.device);
  bool more = true;
  for (auto it = loader.begin(); more && it != loader.end(); ) {
    optimizer.zero_grad();
    const auto [output, target] = bench.look(*it);
    const auto loss = bench.task.loss(output, target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    more = progress.step(loss);
    if (more) ++it;
  }
  return Travelling(totals);
}

Travelling evaluation_pass(const Bench& bench, Loader& loader) {
  const torch::NoGradGuard no_grad;
  bench.model->eval();
  auto totals = bench.task.no_totals(bench.device);
  for (auto& batch : loader) {
    const auto [output, target] = bench.look(batch);
    totals += bench.task.loss(output, target).totals();
  }
  return Travelling(totals);
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
  const Net model(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  const Bench bench{*task, model, device};

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    // The training totals travel while the validation is computed.
    auto training = train_pass(bench, *train_loader, *optimizer, *schedule, progress);
    auto validation = evaluation_pass(bench, *valid_loader);
    const auto trained = training.arrive(*task);
    const auto valid = validation.arrive(*task);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluation_pass(bench, *test_loader).arrive(*task);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
