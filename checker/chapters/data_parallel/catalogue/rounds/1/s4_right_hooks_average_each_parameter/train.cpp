// Step 04 without the wrapper: hooks on the parameters average each gradient in backward().
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// A model of which every rank has a copy, and the copies stay alike.
class Replica {
 public:
  Replica(std::shared_ptr<tasks::Model> model, int world_size) : model_(std::move(model)) {
    copy_from_rank_zero(model_->parameters());
    copy_from_rank_zero(model_->buffers());
    for (auto& parameter : model_->parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.register_hook([world_size](const torch::Tensor& gradient) -> torch::Tensor {
        auto mean = gradient.clone(torch::MemoryFormat::Contiguous);
        all_reduce(mean, ReduceOp::SUM);
        return mean.div_(world_size);
      });
    }
  }

  torch::Tensor operator()(const tasks::Input& input) {
    if (model_->is_training()) copy_from_rank_zero(model_->buffers());
    return model_->forward(input);
  }
  tasks::Model& operator*() const { return *model_; }
  const std::shared_ptr<tasks::Model>& model() const { return model_; }

 private:
  static void copy_from_rank_zero(const std::vector<torch::Tensor>& tensors) {
    for (const auto& tensor : tensors) broadcast(tensor.detach(), 0);
  }

  std::shared_ptr<tasks::Model> model_;
};

class Trainer {
 public:
  Trainer(const tasks::Task& task, Replica& replica, torch::Device device,
          tasks::Progress& progress)
      : task_(task),
        replica_(replica),
        device_(device),
        progress_(progress),
        optimizer_(task.make_optimizer((*replica).parameters())),
        schedule_(task.make_schedule(*optimizer_, progress.total_steps())) {}

  tasks::Score epoch(auto& loader) {
    (*replica_).train();
    auto totals = task_.no_totals(device_);
    bool more = true;
    for (auto batch = loader.begin(); more && batch != loader.end();) {
      const auto loss = step(batch->to(device_));
      totals += loss.totals();
      more = progress_.step(loss);
      if (more) ++batch;
    }
    return task_.score(totals);
  }

  tasks::Score score(auto& loader) {
    const torch::NoGradGuard no_grad;
    (*replica_).eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto here = batch.to(device_);
      totals += task_.loss(replica_(here.input), here.target).totals();
    }
    return task_.score(totals);
  }

 private:
  tasks::Loss step(const tasks::Batch& batch) {
    optimizer_->zero_grad();
    auto loss = task_.loss(replica_(batch.input), batch.target);
    loss.mean().backward();
    optimizer_->step();
    schedule_->step();
    return loss;
  }

  const tasks::Task& task_;
  Replica& replica_;
  torch::Device device_;
  tasks::Progress& progress_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

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
  const data::DataLoaderOptions batches(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  auto module = task->make_model();
  module->to(device);
  Replica replica(module, world_size);
  tasks::Progress progress(options, *train_set.size());
  Trainer trainer(*task, replica, device, progress);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer.epoch(*train_loader);
    const auto valid = trainer.score(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(replica.model(), options.output / "model-best.pt");
    }
  }
  const auto test = trainer.score(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(replica.model(), options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
