// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"
using namespace distributed_utils;

namespace data = torch::data;

namespace {

constexpr int kRoot = 0;

struct Context {
  const tasks::Options& options;
  const tasks::Task& task;
  std::shared_ptr<tasks::Model> model;
  torch::Device device;
  tasks::Progress& progress;
};

tasks::Score evaluate(Context& context, auto& loader) {
  const torch::NoGradGuard no_grad;
  context.model->eval();
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    totals += context.task.loss(context.model->forward(input), target).totals();
  }
  return context.task.score(totals);
}

tasks::Score train_epoch(Context& context, auto& loader, auto& optimizer, auto& schedule) {
  context.model->train();
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    optimizer.zero_grad();
    const auto loss = context.task.loss(context.model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!context.progress.step(loss)) break;
  }
  return context.task.score(totals);
}

// What the root does between MPI_Init and MPI_Bcast.
tasks::Score run_root(Context& context, auto& train_loader, auto& valid_loader) {
  const auto& options = context.options;
  const auto optimizer = context.task.make_optimizer(context.model->parameters());
  const auto schedule = context.task.make_schedule(*optimizer, context.progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !context.progress.finished(); ++epoch) {
    const auto trained = train_epoch(context, train_loader, *optimizer, *schedule);
    const auto valid = evaluate(context, valid_loader);
    context.progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 context.task.format(trained), context.task.format(valid));
    if (valid < best) {
      best = valid;
      torch::save(context.model, options.output / "model-best.pt");
    }
  }
  return best;
}

// Everybody comes here, and leaves with the root's weights.
void bcast_model(const tasks::Model& model) {
  for (const auto& parameter : model.parameters()) broadcast(parameter.detach(), kRoot);
  for (const auto& buffer : model.buffers()) broadcast(buffer.detach(), kRoot);
}

double bcast_value(double value, torch::Device device) {
  const auto message = torch::full({1}, value, torch::dtype(torch::kFloat64).device(device));
  broadcast(message, kRoot);
  return message.item<double>();
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto model = task->make_model();
  model->to(device);
  tasks::Progress progress(options, *train_set.size());
  Context context{options, *task, model, device, progress};

  tasks::Score best;
  if (rank == kRoot) best = run_root(context, *train_loader, *valid_loader);
  bcast_model(*model);
  const double best_loss = bcast_value(best, device);
  if (rank != kRoot) best = tasks::Score(best_loss);

  const auto test = evaluate(context, *test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
