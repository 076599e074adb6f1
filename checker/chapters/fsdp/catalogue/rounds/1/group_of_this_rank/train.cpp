// Each rank gets a group for its shard; the samplers deal out over the world as before.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// All ranks make all groups, in the same order, as new_group() wants it.
Group group_of_this_rank() {
  Group mine;
  for (int rank = 0; rank < get_world_size(); ++rank) {
    if (const auto group = new_group({rank})) mine = *group;
  }
  return mine;
}

class Course {
 public:
  Course(const tasks::Options& options, const World& world)
      : options_(options), device_(world.device), task_(tasks::make_task(options)) {}

  void take() {
    const auto set = task_->dataset("train");
    DistributedSampler sampler(*set.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    const auto loader = torch::data::make_data_loader(
        set, sampler, torch::data::DataLoaderOptions(options_.batch_size).drop_last(true));

    const auto module = task_->make_model();
    module->to(device_);
    FullyShardedDataParallelOptions how;
    how.group = group_of_this_rank();
    how.units = module->blocks();
    const auto model = FullyShardedDataParallel(module, how);
    const auto optimizer = task_->make_optimizer(model->parameters());
    tasks::Progress progress(options_, *set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task_->no_totals(device_);
      for (auto& batch : *loader) {
        const auto loss = progress.take_step(batch, [&](const tasks::Batch& next) {
          const auto [input, target] = next.to(device_);
          optimizer->zero_grad();
          const auto value = task_->loss(model->forward(input), target);
          value.mean().backward();
          optimizer->step();
          return value;
        });
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      const auto trained = total_score(totals);
      const auto valid = evaluate(model, "validation");
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(model, "test");
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Score total_score(const torch::Tensor& totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score evaluate(auto& model, const char* split) {
    const auto set = task_->dataset(split);
    const auto loader = torch::data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options_.batch_size));
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto whole = model->summon_full_params();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model->forward(input), target).totals();
    }
    return total_score(totals);
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Course(options, world).take();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
