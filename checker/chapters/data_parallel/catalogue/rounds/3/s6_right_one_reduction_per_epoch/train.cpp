#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Training and validation of an epoch travel in one tensor: row 0 and row 1.
struct Ledger {
  const tasks::Task& task;
  std::vector<torch::Tensor> rows;

  void enter(const torch::Tensor& totals) { rows.push_back(totals); }
  std::vector<tasks::Score> settle() {
    const auto all = torch::stack(rows);
    rows.clear();
    all_reduce(all, ReduceOp::SUM);
    std::vector<tasks::Score> scores;
    for (int64_t i = 0; i < all.size(0); ++i) scores.push_back(task.score(all[i]));
    return scores;
  }
};

auto totals_of(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto here = batch.to(device);
    totals += task.loss(model->forward(here.input), here.target).totals();
  }
  return totals;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const bool leads = world.rank == 0;
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto loader_of = [&](const std::string& split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
  };
  const auto valid_loader = loader_of("validation");
  const auto test_loader = loader_of("test");
  const auto train_set = task->dataset("train");
  DistributedSampler order(*train_set.size(),
                           {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(
      module, {.bucket_cap_bytes = 1 << 12, .first_bucket_bytes = 1 << 10,
               .reducer = ReducerKind::plain});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto write = [&](const char* name) {
    if (leads) save0(*model, options.output / name);
  };

  Ledger ledger{*task, {}};
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    auto learned = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto here = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(here.input), here.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      learned += loss.totals();
      if (!progress.step(loss)) break;
    }
    ledger.enter(learned);
    ledger.enter(totals_of(*task, model, *valid_loader, device));
    const auto scores = ledger.settle();
    progress.report(scores[0], scores[1]);
    if (leads)
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                   task->format(scores[0]), task->format(scores[1]));
    if (scores[1] < best) {
      best = scores[1];
      write("model-best.safetensors");
    }
  }
  ledger.enter(totals_of(*task, model, *test_loader, device));
  const auto test = ledger.settle().front();
  progress.report(test);
  if (leads) {
    fmt::println("best validation loss: {}", task->describe(best));
    fmt::println("test loss: {}", task->describe(test));
  }
  write("model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
