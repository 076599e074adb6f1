// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// A model's file that is replaced in one go: written under another name, and renamed once all ranks
// know that it is complete.
class ModelFile {
 public:
  ModelFile(const fs::path& folder, std::string_view stem)
      : path_(folder / fmt::format("{}.safetensors", stem)),
        draft_(folder / fmt::format("{}.draft", stem)) {}

  void replace(const torch::nn::Module& model) const {
    save0(model, draft_);
    barrier();
    fs::rename(draft_, path_);
  }

 private:
  fs::path path_;
  fs::path draft_;
};

// The lowest score so far.
class Record {
 public:
  bool beaten_by(const tasks::Score& score) {
    if (!(score < best_)) return false;
    best_ = score;
    return true;
  }
  const tasks::Score& best() const { return best_; }

 private:
  tasks::Score best_;
};

// One pass over a loader's batches. The step gets a batch on the device and the pass's totals, and
// returns false to end the pass.
tasks::Score pass(const tasks::Task& task, auto& loader, torch::Device device, auto step) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    if (!step(batch.to(device), totals)) break;
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

  const auto learn = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    return progress.step(loss);
  };
  const auto measure = [&](const tasks::Batch& batch, torch::Tensor& totals) {
    totals += task->loss(model->forward(batch.input), batch.target).totals();
    return true;
  };
  const auto evaluate = [&, device = device](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return pass(*task, loader, device, measure);
  };

  const ModelFile best_file(options.output, "model-best");
  const ModelFile final_file(options.output, "model-final");
  Record record;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const auto trained = pass(*task, *train_loader, device, learn);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (record.beaten_by(valid)) best_file.replace(*model);
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(record.best()));
  print0("test loss: {}", task->describe(test));
  final_file.replace(*model);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
