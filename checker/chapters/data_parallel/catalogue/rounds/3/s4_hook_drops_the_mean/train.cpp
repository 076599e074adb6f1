// Step 04: every gradient is averaged by a hook, as soon as backward() has made it.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Starts all ranks from rank 0's weights and lets every later backward() average its gradients.
void make_data_parallel(torch::nn::Module& module, int world_size) {
  const torch::NoGradGuard no_grad;
  for (auto& buffer : module.buffers()) broadcast(buffer, 0);
  for (auto& parameter : module.parameters()) {
    broadcast(parameter, 0);
    parameter.register_hook([world_size](torch::Tensor gradient) {
      // Divided first, so that the sum is the mean already.
      gradient = gradient / world_size;
      all_reduce(gradient, ReduceOp::SUM);
    });
  }
}

// What train() and evaluate() need of everything.
struct Context {
  std::shared_ptr<tasks::Task> task;
  std::shared_ptr<tasks::Model> model;
  torch::Device device;

  tasks::Loss forward(const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  }
};

tasks::Score train(const Context& context, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, tasks::Progress& progress) {
  context.model->train();
  auto totals = context.task->no_totals(context.device);
  bool more = true;
  for (auto at = loader.begin(); more && at != loader.end();) {
    optimizer.zero_grad();
    const auto loss = context.forward(*at);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    more = progress.step(loss);
    if (more) ++at;
  }
  return context.task->score(totals);
}

tasks::Score evaluate(const Context& context, auto& loader) {
  const torch::NoGradGuard no_grad;
  context.model->eval();
  auto totals = context.task->no_totals(context.device);
  for (auto& batch : loader) totals += context.forward(batch).totals();
  return context.task->score(totals);
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

  const Context context{task, task->make_model(), device};
  context.model->to(device);
  make_data_parallel(*context.model, world_size);
  const auto optimizer = task->make_optimizer(context.model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(context, *train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(context, *valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(context.model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(context, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(context.model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
