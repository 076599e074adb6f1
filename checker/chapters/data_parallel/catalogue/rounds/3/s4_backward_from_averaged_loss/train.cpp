// Step 04: all ranks go backward from one loss.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Sees every batch's loss. Returns false to leave the loop.
using OnLoss = std::function<bool(const tasks::Loss&)>;

// Runs the model over a loader and adds up the losses; training and evaluation share it.
tasks::Score pass(const tasks::Task& task, auto& model, auto& loader, torch::Device device,
                  const OnLoss& on_loss) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto loss = task.loss(model->forward(input), target);
    totals += loss.totals();
    if (!on_loss(loss)) break;
  }
  return task.score(totals);
}

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
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(device);
  // The same start on all ranks.
  for (const auto& parameter : model->parameters()) broadcast(parameter.detach(), 0);
  for (const auto& buffer : model->buffers()) broadcast(buffer, 0);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // The gradient of the mean loss of all ranks: one number travels instead of all gradients.
  const OnLoss learn = [&](const tasks::Loss& loss) {
    optimizer->zero_grad();
    const auto mean = loss.mean();
    all_reduce(mean.detach(), ReduceOp::AVG);
    mean.backward();
    optimizer->step();
    schedule->step();
    return progress.step(loss);
  };
  const OnLoss look_only = [](const tasks::Loss&) { return true; };

  const auto train = [&] {
    model->train();
    return pass(*task, model, *train_loader, device, learn);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return pass(*task, model, *loader, device, look_only);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
