#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A second model that is only ever evaluated, so that nothing here can change the one in training.
class EvaluationModel {
 public:
  EvaluationModel(const tasks::Task& task, torch::Device device)
      : task_(task), device_(device), model_(task.make_model()) {
    model_->to(device);
    model_->eval();
  }

  void take(const torch::nn::Module& trained) {
    const torch::NoGradGuard no_grad;
    copy(trained.parameters(), model_->parameters());
    copy(trained.buffers(), model_->buffers());
  }

  tasks::Score operator()(auto& loader) const {
    const torch::NoGradGuard no_grad;
    auto totals = task_.no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  static void copy(const std::vector<torch::Tensor>& from, const std::vector<torch::Tensor>& to) {
    for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  }

  const tasks::Task& task_;
  torch::Device device_;
  std::shared_ptr<tasks::Model> model_;
};

torch::Tensor balanced(const tasks::Loss& loss) {
  auto share =
      torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(loss.sum.device()));
  all_reduce(share, ReduceOp::AVG);
  return loss.sum / share;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = rank0_first([&] { return tasks::make_task(options); });

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}), batches);
  auto test_loader = data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}), batches);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  EvaluationModel evaluate(*task, world.device);
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  model->train();
  for (int64_t epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
       epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      balanced(loss).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    evaluate.take(*module);
    all_reduce(totals, ReduceOp::SUM);
    synchronize_buffers(*module);
    const auto trained = task->score(totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  evaluate.take(*module);
  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
