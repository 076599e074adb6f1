// Step 03: Each rank gets its share of the data.
// Top to bottom: parameters, world, data, model, run, results.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

int main(int argc, char** argv) try {
  // parameters
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  // world
  SetupOptions start;
  start.backend = options.backend;
  start.device = options.device;
  const World world = setup(start);
  const torch::Device device = world.device;

  // data
  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");

  DistributedSamplerOptions dealing;
  dealing.seed = options.seed;
  dealing.num_replicas = world.world_size;
  dealing.rank = world.rank;

  dealing.shuffle = true;
  dealing.drop_last = true;
  DistributedSampler train_sampler(*train_set.size(), dealing);

  dealing.shuffle = false;  // validation and test: in order, and no repeated samples
  dealing.pad = false;
  DistributedSampler valid_sampler(*valid_set.size(), dealing);
  DistributedSampler test_sampler(*test_set.size(), dealing);

  const torch::data::DataLoaderOptions any_batches(options.batch_size);
  torch::data::DataLoaderOptions full_batches(options.batch_size);
  full_batches.drop_last(true);
  auto train_loader = torch::data::make_data_loader(train_set, train_sampler, full_batches);
  auto valid_loader = torch::data::make_data_loader(valid_set, valid_sampler, any_batches);
  auto test_loader = torch::data::make_data_loader(test_set, test_sampler, any_batches);

  // model
  auto model = task->make_model();
  model->to(device);
  auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // run
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    auto train_totals = task->no_totals(device);
    model->train();
    for (auto& batch : *train_loader) {
      const tasks::Batch b = batch.to(device);
      optimizer->zero_grad();
      const torch::Tensor output = model->forward(b.input);
      const tasks::Loss loss = task->loss(output, b.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      train_totals += loss.totals();
      if (!progress.step(loss)) break;
    }

    auto valid_totals = task->no_totals(device);
    model->eval();
    torch::GradMode::set_enabled(false);
    for (auto& batch : *valid_loader) {
      const tasks::Batch b = batch.to(device);
      const torch::Tensor output = model->forward(b.input);
      valid_totals += task->loss(output, b.target).totals();
    }
    torch::GradMode::set_enabled(true);

    const tasks::Score trained = task->score(train_totals);
    const tasks::Score valid = task->score(valid_totals);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  // results
  auto test_totals = task->no_totals(device);
  model->eval();
  torch::GradMode::set_enabled(false);
  for (auto& batch : *test_loader) {
    const tasks::Batch b = batch.to(device);
    const torch::Tensor output = model->forward(b.input);
    test_totals += task->loss(output, b.target).totals();
  }
  torch::GradMode::set_enabled(true);
  const tasks::Score test = task->score(test_totals);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
