// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Data parallelism by hand. The parameters of rank 0 go to everybody at the start, and after each
// backward() the gradients of all ranks are averaged in one flat message.
class GradientBucket {
 public:
  explicit GradientBucket(const torch::nn::Module& module) : parameters_(module.parameters()) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : parameters_) broadcast(parameter.detach(), 0);
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);
  }

  void average() const {
    const torch::NoGradGuard no_grad;
    const auto bucket = pack();
    all_reduce(bucket, ReduceOp::AVG);
    unpack(bucket);
  }

 private:
  torch::Tensor pack() const {
    std::vector<torch::Tensor> flat;
    flat.reserve(parameters_.size());
    for (const auto& parameter : parameters_) flat.push_back(parameter.grad().reshape(-1));
    return torch::cat(flat);
  }

  void unpack(const torch::Tensor& bucket) const {
    int64_t offset = 0;
    for (const auto& parameter : parameters_) {
      auto gradient = parameter.grad();
      const auto size = gradient.numel();
      gradient = bucket.narrow(0, offset, size).view(gradient.sizes());
      offset += size;
    }
  }

  std::vector<torch::Tensor> parameters_;
};

tasks::Loss train_step(const tasks::Task& task, tasks::Model& model, const GradientBucket& bucket,
                       torch::optim::Optimizer& optimizer, const tasks::Batch& batch,
                       torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto loss = task.loss(model.forward(input), target);
  loss.mean().backward();
  bucket.average();
  optimizer.step();
  return loss;
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
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
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

  const auto model = task->make_model();
  model->to(device);
  const GradientBucket bucket(*model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto loss = train_step(*task, *model, bucket, *optimizer, batch, device);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
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
