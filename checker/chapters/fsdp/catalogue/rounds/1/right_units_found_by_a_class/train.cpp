// Sharded trainer. I keep everything in one class, so that nobody can use the bare module later.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;

// Every Block below the root is a unit. modules() visits them in the order of registration.
std::vector<std::shared_ptr<du::Block>> find_units(const torch::nn::Module& root) {
  std::vector<std::shared_ptr<du::Block>> found;
  for (const auto& part : root.modules(/*include_self=*/false)) {
    if (auto block = std::dynamic_pointer_cast<du::Block>(part)) found.push_back(block);
  }
  return found;
}

class Trainer {
 public:
  Trainer(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sharded_(make_sharded(*task_, device)),
        optimizer_(task_->make_optimizer(sharded_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void run() {
    du::DistributedSampler order(*train_set_.size(),
                                 {.shuffle = true, .seed = options_.seed, .drop_last = true});
    auto loader = torch::data::make_data_loader(
        train_set_, order, torch::data::DataLoaderOptions(options_.batch_size).drop_last(true));
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      if (progress_.finished()) break;
      order.set_epoch(epoch);
      const auto learned = one_epoch(*loader);
      const auto checked = score_of("validation");
      progress_.report(learned, checked);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                 task_->format(learned), task_->format(checked));
      if (checked < best_) {
        best_ = checked;
        save("model-best.safetensors");
      }
    }
    const auto test = score_of("test");
    progress_.report(test);
    du::print0("best validation loss: {}", task_->describe(best_));
    du::print0("test loss: {}", task_->describe(test));
    save("model-final.safetensors");
  }

 private:
  using Sharded = du::FullyShardedDataParallel<tasks::Model>;

  static Sharded make_sharded(const tasks::Task& task, torch::Device device) {
    auto plain = task.make_model();
    plain->to(device);
    return Sharded(plain, {.units = find_units(*plain)});
  }

  tasks::Loss learn(const tasks::Batch& batch) {
    const auto here = batch.to(device_);
    sharded_->zero_grad();
    auto loss = task_->loss(sharded_->forward(here.input), here.target);
    loss.mean().backward();
    optimizer_->step();
    return loss;
  }

  tasks::Score one_epoch(auto& loader) {
    sharded_->train();
    auto sums = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto loss =
          progress_.take_step(batch, [this](const tasks::Batch& taken) { return learn(taken); });
      schedule_->step();
      sums += loss.totals();
      if (!progress_.step(loss)) break;
    }
    du::all_reduce(sums, du::ReduceOp::SUM);
    return task_->score(sums);
  }

  tasks::Score score_of(const char* split) {
    const auto set = task_->dataset(split);
    du::DistributedSampler mine(*set.size(), {.shuffle = false, .pad = false});
    auto loader = torch::data::make_data_loader(
        set, mine, torch::data::DataLoaderOptions(options_.batch_size));
    auto sums = task_->no_totals(device_);
    {
      const torch::NoGradGuard without_gradients;
      sharded_->eval();
      const auto gathered = sharded_->summon_full_params();
      for (auto& batch : *loader) {
        const auto here = batch.to(device_);
        sums += task_->loss(sharded_->forward(here.input), here.target).totals();
      }
    }
    du::all_reduce(sums, du::ReduceOp::SUM);
    return task_->score(sums);
  }

  void save(const char* name) { du::save0(*sharded_, options_.output / name); }

  tasks::Options options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  Sharded sharded_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) {
  try {
    const auto options = tasks::parse_options(argc, argv);
    tasks::apply(options);
    const auto world = du::setup({.backend = options.backend, .device = options.device});
    Trainer(options, world.device).run();
    du::destroy_process_group();
    return 0;
  } catch (const std::exception& error) {
    return tasks::report(error);
  }
}
