#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Divides gradients by the mean number of targets. The ranks add up their numbers while the model
// runs forward and back, and the quotient is ready when the gradients are.
class TargetCount {
 public:
  TargetCount(int64_t mine, torch::Device device)
      : all_(torch::full({}, double(mine), torch::dtype(torch::kDouble).device(device))),
        work_(all_reduce_async(all_, ReduceOp::SUM)) {}

  void divide_gradients(const std::vector<torch::Tensor>& parameters) {
    work_.wait();
    const double mean = all_.item<double>() / get_world_size();
    for (const auto& parameter : parameters)
      if (parameter.grad().defined()) parameter.grad().div_(mean);
  }

 private:
  torch::Tensor all_;
  Work work_;
};

class Trainer {
 public:
  explicit Trainer(const tasks::Options& options)
      : options_(options),
        world_(setup({.backend = options.backend, .device = options.device})),
        checkpoints_(options) {
    // A first task is made and thrown away on the first rank of each node: it leaves its data.
    if (world_.local_rank == 0) tasks::make_task(options_);
    barrier();
    task_ = tasks::make_task(options_);
  }

  void run() {
    const auto train_set = task_->dataset("train");
    const auto valid_set = task_->dataset("validation");
    const auto test_set = task_->dataset("test");
    DistributedSampler sampler(*train_set.size(), {.seed = options_.seed, .drop_last = true});
    const auto module = task_->make_model();
    module->to(world_.device);
    const auto model =
        DistributedDataParallel(module, {.bucket_indices = checkpoints_.bucket_indices()});
    tasks::OptimizerOptions rates;
    rates.learning_rate_factor = std::sqrt(double(world_.world_size));
    const auto optimizer = task_->make_optimizer(model->parameters(), rates);
    tasks::Progress progress(options_, *train_set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    auto loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto epoch = checkpoints_.restore(*model, *optimizer, *schedule, sampler, progress, best);
    for (; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = checkpoints_.begin_epoch(task_->no_totals(world_.device));
      for (auto& batch : *loader) {
        const auto loss = step(model, *optimizer, batch);
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
        checkpoints_.step(totals);
      }
      const auto trained = sum(totals);
      synchronize_buffers(*model->module());
      const auto valid = evaluate(model, valid_set);
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(model, test_set);
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Loss step(auto& model, auto& optimizer, const tasks::Batch& batch) const {
    TargetCount count(batch.target.count(), world_.device);
    const auto [input, target] = batch.to(world_.device);
    optimizer.zero_grad();
    auto loss = task_->loss(model->forward(input), target);
    loss.sum.backward();
    count.divide_gradients(model->parameters());
    optimizer.step();
    return loss;
  }

  tasks::Score evaluate(auto& model, const tasks::Dataset& set) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world_.device);
      totals += task_->loss(model->forward(input), target).totals();
    }
    return sum(totals);
  }

  tasks::Score sum(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  World world_;
  tasks::Checkpointing checkpoints_;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  {
    Trainer trainer(options);
    trainer.run();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
