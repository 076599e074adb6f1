// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

namespace hvd {

void broadcast_parameters(const torch::nn::Module& module, int root_rank) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : module.parameters()) broadcast(parameter.detach(), root_rank);
  for (const auto& buffer : module.buffers()) broadcast(buffer.detach(), root_rank);
}

// Averages the gradients of all ranks, then steps.
class DistributedOptimizer {
 public:
  DistributedOptimizer(const tasks::Task& task, std::vector<torch::Tensor> parameters)
      : parameters_(parameters), optimizer_(task.make_optimizer(std::move(parameters))) {}

  void zero_grad() { optimizer_->zero_grad(); }

  void step() {
    synchronize();
    optimizer_->step();
  }

  torch::optim::Optimizer& wrapped() { return *optimizer_; }

 private:
  // All are sent before the first one is waited for.
  void synchronize() {
    const torch::NoGradGuard no_grad;
    std::vector<Work> under_way;
    for (auto& parameter : parameters_) {
      if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
      under_way.push_back(all_reduce_async(parameter.grad(), ReduceOp::SUM));
    }
    const double size = get_world_size();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      under_way[i].wait();
      parameters_[i].grad().div_(size);
    }
  }

  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace hvd

tasks::Loss loss_of(const tasks::Task& task, auto& model, const tasks::Batch& batch,
                    torch::Device device) {
  const auto [input, target] = batch.to(device);
  return task.loss(model->forward(input), target);
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader,
                   hvd::DistributedOptimizer& optimizer, tasks::Schedule& schedule,
                   torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const auto loss = loss_of(task, model, batch, device);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) totals += loss_of(task, model, batch, device).totals();
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
  hvd::broadcast_parameters(*model, 0);
  hvd::DistributedOptimizer optimizer(*task, model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(optimizer.wrapped(), progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(static_cast<uint64_t>(epoch));
    const auto trained =
        train(*task, model, *train_loader, optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
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
