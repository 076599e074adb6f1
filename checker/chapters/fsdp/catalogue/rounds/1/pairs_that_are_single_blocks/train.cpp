// Two layers per unit halve the number of messages: each second block opens a unit, and the block
// behind it belongs to it.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

std::vector<std::shared_ptr<Block>> in_pairs(const std::vector<std::shared_ptr<Block>>& blocks) {
  std::vector<std::shared_ptr<Block>> heads;
  for (size_t i = 0; i < blocks.size(); i += 2) heads.push_back(blocks[i]);
  return heads;
}

template <typename M>
class Epochs {
 public:
  Epochs(const tasks::Task& task, M model, torch::Device device)
      : task_(task), model_(model), device_(device) {}

  tasks::Score training(auto& loader, auto& optimizer, auto& schedule, auto& progress) {
    model_->train();
    start();
    for (auto& batch : loader) {
      auto loss = progress.take_step(batch, [&](const tasks::Batch& b) {
        optimizer.zero_grad();
        auto l = loss_of(b);
        l.mean().backward();
        optimizer.step();
        return l;
      });
      schedule.step();
      totals_ += loss.totals();
      if (!progress.step(loss)) break;
    }
    return finish();
  }

  tasks::Score evaluation(auto& loader) {
    torch::NoGradGuard no_grad;
    model_->eval();
    start();
    const auto gathered = model_->summon_full_params();
    for (auto& batch : loader) totals_ += loss_of(batch).totals();
    return finish();
  }

 private:
  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }
  void start() { totals_ = task_.no_totals(device_); }
  tasks::Score finish() {
    all_reduce(totals_);
    return task_.score(totals_);
  }

  const tasks::Task& task_;
  M model_;
  torch::Device device_;
  torch::Tensor totals_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  using Options = torch::data::DataLoaderOptions;
  auto train_loader = torch::data::make_data_loader(train_set, sampler,
                                                    Options(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, DistributedSampler(*valid_set.size(), {.shuffle = false, .pad = false}),
      Options(options.batch_size));
  auto test_loader = torch::data::make_data_loader(
      test_set, DistributedSampler(*test_set.size(), {.shuffle = false, .pad = false}),
      Options(options.batch_size));

  const auto network = task->make_model();
  network->to(world.device);
  const auto model = FullyShardedDataParallel(network, {.units = in_pairs(network->blocks())});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Epochs epochs(*task, model, world.device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = epochs.training(*train_loader, *optimizer, *schedule, progress);
    const auto valid = epochs.evaluation(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = epochs.evaluation(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
