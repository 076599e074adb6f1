// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Writes a model's tensors by name. Only the rank that owns the files does.
class Archivist {
 public:
  Archivist(std::filesystem::path folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  void file(std::string_view name, const torch::nn::Module& model) const {
    if (rank_ != 0) return;
    StateDict tensors;
    for (const auto& item : model.named_parameters()) {
      tensors.emplace(item.key(), item.value().detach());
    }
    for (const auto& item : model.named_buffers()) {
      tensors.emplace(item.key(), item.value().detach());
    }
    save_file(tensors, folder_ / fmt::format("{}.safetensors", name));
  }

 private:
  std::filesystem::path folder_;
  int rank_;
};

// A split with the loader over this rank's share of it.
class Samples {
 public:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  Samples(const tasks::Dataset& set, const DistributedSamplerOptions& share,
          const data::DataLoaderOptions& batches)
      : size_(*set.size()),
        sampler_(size_, share),
        loader_(data::make_data_loader(set, sampler_, batches)) {}

  Loader& in_epoch(int64_t epoch) {
    sampler_.set_epoch(static_cast<uint64_t>(epoch));
    return *loader_;
  }
  Loader& in_order() { return *loader_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> loader_;
};

tasks::Score train(const tasks::Task& task, auto& model, Samples::Loader& loader, auto& optimizer,
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

tasks::Score evaluate(const tasks::Task& task, auto& model, Samples::Loader& loader,
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
  const auto whole_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto all_batches = data::DataLoaderOptions(options.batch_size);
  Samples training(task->dataset("train"),
                   {.shuffle = true, .seed = options.seed, .drop_last = true}, whole_batches);
  Samples validation(task->dataset("validation"), {.shuffle = false, .pad = false}, all_batches);
  Samples testing(task->dataset("test"), {.shuffle = false, .pad = false}, all_batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, training.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const Archivist archivist(options.output, rank);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(*task, model, training.in_epoch(epoch), *optimizer, *schedule,
                               device, progress);
    const auto valid = evaluate(*task, model, validation.in_order(), device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      archivist.file("model-best", *model);
    }
  }

  const auto test = evaluate(*task, model, testing.in_order(), device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  archivist.file("model-final", *model);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
