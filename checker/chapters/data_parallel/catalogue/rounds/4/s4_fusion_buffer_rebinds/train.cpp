// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Horovod's tensor fusion: all gradients travel in one buffer.
class FusionBuffer {
 public:
  explicit FusionBuffer(std::vector<torch::Tensor> parameters)
      : parameters_(std::move(parameters)) {}

  void average() const {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> pieces;
    for (const auto& parameter : parameters_) pieces.push_back(gradient_of(parameter).flatten());
    const auto buffer = torch::cat(pieces);
    all_reduce(buffer, ReduceOp::AVG);

    int64_t offset = 0;
    for (const auto& parameter : parameters_) {
      auto gradient = gradient_of(parameter);
      const auto size = gradient.numel();
      gradient = buffer.narrow(0, offset, size).view_as(gradient);
      offset += size;
    }
  }

 private:
  static torch::Tensor gradient_of(const torch::Tensor& parameter) {
    return parameter.grad().defined() ? parameter.grad() : torch::zeros_like(parameter);
  }

  std::vector<torch::Tensor> parameters_;
};

void broadcast_parameters(const torch::nn::Module& module, int root) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) broadcast(item.value().detach(), root);
  for (const auto& item : module.named_buffers()) broadcast(item.value().detach(), root);
}

// hvd.DistributedOptimizer
class DistributedOptimizer {
 public:
  DistributedOptimizer(const tasks::Task& task, const tasks::Model& model)
      : local_(task.make_optimizer(model.parameters())), fusion_(model.parameters()) {}

  void zero_grad() { local_->zero_grad(); }
  void step() {
    fusion_.average();
    local_->step();
  }
  torch::optim::Optimizer& local() { return *local_; }

 private:
  std::unique_ptr<torch::optim::Optimizer> local_;
  FusionBuffer fusion_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});

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
  model->to(world.device);
  broadcast_parameters(*model, 0);
  DistributedOptimizer optimizer(*task, *model);

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(optimizer.local(), progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(static_cast<uint64_t>(epoch));
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *train_loader) {
      optimizer.zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer.step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
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
