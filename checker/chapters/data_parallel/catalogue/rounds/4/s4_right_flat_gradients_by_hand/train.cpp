// Step 04: the ranks train one model. Gradients are averaged by hand, all in one message.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Rank 0's weights for everybody.
void start_equal(tasks::Model& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters()) broadcast(parameter.data(), /*source=*/0);
  for (const auto& buffer : model.buffers()) broadcast(buffer, /*source=*/0);
}

// Puts the mean over the ranks in the place of each gradient.
void average_gradients(const std::vector<torch::Tensor>& parameters, int world_size) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  if (gradients.empty()) return;

  std::vector<torch::Tensor> flat;
  for (const auto& gradient : gradients) flat.push_back(gradient.reshape({-1}));
  const auto all = torch::cat(flat);
  all_reduce(all, ReduceOp::SUM);
  all.div_(world_size);

  int64_t begin = 0;
  for (auto& gradient : gradients) {
    const auto length = gradient.numel();
    gradient.copy_(all.narrow(0, begin, length).view(gradient.sizes()));
    begin += length;
  }
}

tasks::Score evaluate(const tasks::Task& task, tasks::Model& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model.eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model.forward(input), target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
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
  start_equal(*model);
  const auto parameters = model->parameters();
  const auto optimizer = task->make_optimizer(parameters);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      if (world.world_size > 1) average_gradients(parameters, world.world_size);
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*task, *model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, *model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
