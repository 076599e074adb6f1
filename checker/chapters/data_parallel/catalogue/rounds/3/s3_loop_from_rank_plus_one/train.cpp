// Step 03: Each rank gets its share of the data.
// One long main: read, decompose, iterate, write.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [myid, local_id, nprocs, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  const auto nb = static_cast<size_t>(options.batch_size);

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = data::make_data_loader(train_set, train_sampler,
                                             data::DataLoaderOptions(nb).drop_last(true));
  auto test_loader = data::make_data_loader(test_set, test_sampler, data::DataLoaderOptions(nb));

  // Validation does not change from epoch to epoch: its samples are dealt out here once, cyclically,
  //   do i = myid + 1, n, nprocs
  // and cut into batches.
  std::vector<std::vector<size_t>> valid_batches;
  const size_t n = *valid_set.size();
  for (size_t i = myid + 1; i < n; i += nprocs) {
    if (valid_batches.empty() || valid_batches.back().size() == nb) valid_batches.emplace_back();
    valid_batches.back().push_back(i);
  }

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 1; epoch <= options.epochs && !progress.finished(); ++epoch) {
    // training
    model->train();
    auto train_sum = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto local = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(local.input), local.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_sum += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(train_sum);

    // validation
    model->eval();
    auto valid_sum = task->no_totals(device);
    {
      const torch::NoGradGuard no_grad;
      for (const auto& indices : valid_batches) {
        const auto local = valid_set.get_batch(indices).to(device);
        valid_sum += task->loss(model->forward(local.input), local.target).totals();
      }
    }
    const auto valid = task->score(valid_sum);

    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  // test
  model->eval();
  auto test_sum = task->no_totals(device);
  for (auto& batch : *test_loader) {
    const torch::NoGradGuard no_grad;
    const auto local = batch.to(device);
    test_sum += task->loss(model->forward(local.input), local.target).totals();
  }
  const auto test = task->score(test_sum);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
