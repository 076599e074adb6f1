// Step 02: Several processes find each other.
//
// The same program runs once per device. Each copy is a rank. After this step the ranks know each
// other, and each has its own device. They still all do the same work.
//
// Run it: ./workbook run 02 --world 2
// Made by ./workbook render from checker/chapters/data_parallel/train.cpp; it is yours now.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

// TODO 1: Include distributed_utils.
//   Make the library distributed_utils known here. Include its one header, and open its namespace
//   below.
//
//   PyTorch's C++ API lacks DistributedSampler, DistributedDataParallel and more. This library has
//   them, under the names that Python uses.
//
//   Expect no difference yet: the program compiles and trains as before.
namespace data = torch::data;

// Takes one training step and returns the batch's loss.
tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

// Trains for one epoch and returns its score: the mean loss per target.
tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      return train_step(task, model, optimizer, taken, device);
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto output = model->forward(input);
    totals += task.loss(output, target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  // TODO 2: Remove the hand-picked device.
  //   No rank may pick its own device. Remove the statement below that declares `device`. Then do
  //   TODO 3 at once: in between, the program does not compile.
  //
  //   The statement is right for one process and wrong for four. Every rank would run it and pick
  //   the same first GPU. That GPU would do all the work while the others idle. setup() gives each
  //   rank its device (TODO 3).
  // TODO 3: Call setup().
  //   Call setup() here. It joins this process with the others and tells it its rank and its
  //   device. Pass the backend and the device that the user chose, both in `options`. setup()
  //   returns a World.
  //
  //   The processes form a process group. `rank` counts from 0 to world_size - 1 over all nodes,
  //   `local_rank` within one node. `device` replaces the one that TODO 2 removed.
  //
  //   Expect every line twice with --world 2. There are two ranks, and each still does all the
  //   work.
  const torch::Device device = options.device.value_or(
      torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU));

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    // This tells the checker and the monitor; it prints nothing.
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
