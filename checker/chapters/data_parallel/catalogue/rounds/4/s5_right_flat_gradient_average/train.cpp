// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A model of which every rank has an equal copy, by hand: rank 0's weights for all at the start,
// and the mean of all ranks' gradients in every step.
class SharedModel {
 public:
  SharedModel(std::shared_ptr<tasks::Model> module, int ranks)
      : module_(std::move(module)), ranks_(ranks) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : module_->parameters()) broadcast(parameter.detach(), 0);
    agree_on_buffers();
  }

  tasks::Model* operator->() const { return module_.get(); }
  const std::shared_ptr<tasks::Model>& whole() const { return module_; }

  torch::Tensor forward(const tasks::Input& input) const {
    if (module_->is_training()) agree_on_buffers();
    return module_->forward(input);
  }

  // To be called between backward() and the optimizer's step.
  void average_gradients() const {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> gradients;
    std::vector<torch::Tensor> flat;
    for (const auto& parameter : module_->parameters()) {
      if (!parameter.grad().defined()) continue;
      gradients.push_back(parameter.grad());
      flat.push_back(parameter.grad().reshape(-1));
    }
    const auto message = torch::cat(flat);
    all_reduce(message, ReduceOp::SUM);
    message.div_(ranks_);
    int64_t offset = 0;
    for (auto& gradient : gradients) {
      gradient.copy_(message.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
      offset += gradient.numel();
    }
  }

 private:
  void agree_on_buffers() const {
    const torch::NoGradGuard no_grad;
    for (const auto& buffer : module_->buffers()) broadcast(buffer, 0);
  }

  std::shared_ptr<tasks::Model> module_;
  int ranks_;
};

tasks::Score mean_over_ranks(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const SharedModel& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model.forward(input), target).totals();
  }
  return mean_over_ranks(task, totals);
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

  const auto module = task->make_model();
  module->to(device);
  const SharedModel model(module, world_size);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model.forward(input), target);
      loss.mean().backward();
      model.average_gradients();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = mean_over_ranks(*task, totals);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model.whole(), options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model.whole(), options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
