// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A copy of all weights on the host that later steps do not change.
StateDict snapshot(const torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  StateDict copy;
  for (const auto& [name, tensor] : state_dict(module)) {
    copy.emplace(name, tensor.detach().to(torch::kCPU).clone());
  }
  return copy;
}

// All there is to know about an epoch. Its number and its model are given when it is opened, the
// scores when it is closed.
struct EpochRecord {
  int64_t number = 0;
  StateDict weights;
  tasks::Score trained;
  tasks::Score valid;
};

// Receives closed epochs: says them, and keeps the best one's model.
class Archive {
 public:
  Archive(const tasks::Task& task, const tasks::Options& options)
      : task_(task), options_(options) {}

  void accept(const EpochRecord& record) {
    print0("epoch {}/{}: training loss {}, validation loss {}", record.number + 1,
           options_.epochs, task_.format(record.trained), task_.format(record.valid));
    if (!(record.valid < best_)) return;
    best_ = record.valid;
    if (get_rank() == 0) save_file(record.weights, options_.output / "model-best.safetensors");
  }
  const tasks::Score& best() const { return best_; }

 private:
  const tasks::Task& task_;
  const tasks::Options& options_;
  tasks::Score best_;
};

tasks::Score train(const tasks::Task& task, const auto& model, auto& loader, auto& optimizer,
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
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const auto& model, auto& loader,
                      torch::Device device) {
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

  Archive archive(*task, options);
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    EpochRecord record{.number = epoch, .weights = snapshot(*model)};
    train_sampler.set_epoch(epoch);
    record.trained = train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    record.valid = evaluate(*task, model, *valid_loader, device);
    progress.report(record.trained, record.valid);
    archive.accept(record);
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(archive.best()));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
