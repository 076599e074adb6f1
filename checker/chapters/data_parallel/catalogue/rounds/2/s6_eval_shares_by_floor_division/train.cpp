// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A contiguous piece of a split for each rank. Evaluation needs no shuffling, and neighbours in the
// data set are read faster than samples dealt out like cards.
class SliceSampler : public data::samplers::Sampler<> {
 public:
  SliceSampler(size_t samples, int rank, int world_size) {
    const auto share = samples / static_cast<size_t>(world_size);
    indices_.resize(share);
    std::iota(indices_.begin(), indices_.end(), static_cast<size_t>(rank) * share);
  }

  void reset(std::optional<size_t> = std::nullopt) override { position_ = 0; }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (position_ == indices_.size()) return std::nullopt;
    const auto begin = indices_.begin() + static_cast<std::ptrdiff_t>(position_);
    const auto count = std::min(batch_size, indices_.size() - position_);
    position_ += count;
    return std::vector<size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  std::vector<size_t> indices_;
  size_t position_ = 0;
};

// Adds up what batches lost, and knows how to make it everybody's.
class Account {
 public:
  Account(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}
  void enter(const tasks::Loss& loss) { totals_ += loss.totals(); }
  tasks::Score close() && {
    all_reduce(totals_, ReduceOp::SUM);
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto slice_of = [&](const tasks::Dataset& set) {
    return SliceSampler(*set.size(), world.rank, world.world_size);
  };

  const auto batches = [&](bool whole_only) {
    return data::DataLoaderOptions(options.batch_size).drop_last(whole_only);
  };
  auto train_loader = data::make_data_loader(train_set, train_sampler, batches(true));
  auto valid_loader = data::make_data_loader(valid_set, slice_of(valid_set), batches(false));
  auto test_loader = data::make_data_loader(test_set, slice_of(test_set), batches(false));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto forward = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };

  const auto train = [&] {
    model->train();
    Account account(*task, device);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = forward(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      account.enter(loss);
      if (!progress.step(loss)) break;
    }
    return std::move(account).close();
  };

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    Account account(*task, device);
    for (auto& batch : loader) account.enter(forward(batch));
    return std::move(account).close();
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
