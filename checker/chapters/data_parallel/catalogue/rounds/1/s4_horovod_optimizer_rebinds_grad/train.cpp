// Step 04: The ranks train one model.
// At work we use Horovod, so this does it Horovod's way: the optimizer averages the gradients.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// hvd.broadcast_parameters
void broadcast_parameters(torch::nn::Module& model, int root) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) broadcast(parameter.detach(), root);
  for (auto& buffer : model.buffers()) broadcast(buffer, root);
}

// hvd.DistributedOptimizer: step() averages the gradients over all ranks first.
class DistributedOptimizer {
 public:
  DistributedOptimizer(torch::optim::Optimizer& inner, std::vector<torch::Tensor> parameters)
      : inner_(inner), parameters_(std::move(parameters)) {}

  void zero_grad() { inner_.zero_grad(); }

  void step() {
    synchronize();
    inner_.step();
  }

 private:
  // One message for all gradients: fuse them, average, and cut them apart again.
  void synchronize() {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> pieces;
    std::vector<int64_t> sizes;
    for (const auto& parameter : parameters_) {
      if (!parameter.grad().defined()) continue;
      pieces.push_back(parameter.grad().reshape({-1}));
      sizes.push_back(parameter.numel());
    }
    const auto fused = torch::cat(pieces);
    all_reduce(fused, ReduceOp::AVG);
    const auto averaged = fused.split_with_sizes(sizes);
    size_t next = 0;
    for (const auto& parameter : parameters_) {
      auto grad = parameter.grad();
      if (!grad.defined()) continue;
      grad = averaged[next++].view_as(parameter);
    }
  }

  torch::optim::Optimizer& inner_;
  std::vector<torch::Tensor> parameters_;
};

// Runs over a loader once; `step` gets each batch and says whether to go on.
template <class Loader, class Step>
void for_each_batch(Loader& loader, torch::Device device, Step step) {
  for (auto& batch : loader) {
    if (!step(batch.to(device))) return;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const torch::Device device = world.device;

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
  broadcast_parameters(*model, /*root=*/0);
  const auto local_optimizer = task->make_optimizer(model->parameters());
  DistributedOptimizer optimizer(*local_optimizer, model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*local_optimizer, progress.total_steps());

  const auto fit_epoch = [&] {
    model->train();
    auto totals = task->no_totals(device);
    for_each_batch(*train_loader, device, [&](const tasks::Batch& batch) {
      optimizer.zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer.step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    return task->score(totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for_each_batch(loader, device, [&](const tasks::Batch& batch) {
      totals += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = fit_epoch();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
