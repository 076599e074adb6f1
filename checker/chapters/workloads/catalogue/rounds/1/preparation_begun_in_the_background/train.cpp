#include <fmt/format.h>
#include <torch/torch.h>

#include <future>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Loader = std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>>;

class Trainer {
 public:
  Trainer(const tasks::Options& options, const World& world, std::shared_ptr<tasks::Task> task)
      : options_(options),
        world_(world),
        task_(std::move(task)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(), {.seed = options.seed, .drop_last = true}),
        module_(new_module()),
        checkpoints_(options),
        model_(module_, {.bucket_indices = checkpoints_.bucket_indices()}),
        optimizer_(
            task_->make_optimizer(model_->parameters(), {std::sqrt(double(world.world_size))})),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void fit() {
    const auto loader = data::make_data_loader(
        train_set_, sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    const auto validation = split("validation");
    int64_t epoch =
        checkpoints_.restore(*model_, *optimizer_, *schedule_, sampler_, progress_, best_);
    for (; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      sampler_.set_epoch(epoch);
      const auto trained = learn(*loader);
      const auto valid = measure(*validation);
      progress_.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best_) {
        best_ = valid;
        save0(*model_, options_.output / "model-best.safetensors");
      }
    }
  }

  void test() {
    const auto score = measure(*split("test"));
    progress_.report(score);
    print0("best validation loss: {}", task_->describe(best_));
    print0("test loss: {}", task_->describe(score));
    save0(*model_, options_.output / "model-final.safetensors");
  }

 private:
  std::shared_ptr<tasks::Model> new_module() const {
    auto module = task_->make_model();
    module->to(world_.device);
    return module;
  }

  Loader split(const char* name) const {
    const auto set = task_->dataset(name);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Score learn(auto& loader) {
    model_->train();
    auto totals = checkpoints_.begin_epoch(task_->no_totals(world_.device));
    for (auto& batch : loader) {
      const auto here = batch.to(world_.device);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(here.input), here.target);
      const auto count =
          torch::full({1}, double(loss.count), torch::dtype(torch::kDouble).device(world_.device));
      all_reduce(count, ReduceOp::SUM);
      (loss.sum * world_.world_size / count.squeeze()).backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
      checkpoints_.step(totals);
    }
    // From here on everybody has the same running statistics.
    synchronize_buffers(*model_, Buffers::mean);
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score measure(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto here = batch.to(world_.device);
      totals += task_->loss(model_->forward(here.input), here.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::shared_ptr<tasks::Model> module_;
  tasks::Checkpointing checkpoints_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  // Preparing takes a while, and so does finding the other ranks: do both at the same time.
  auto pending = std::async(std::launch::async, [&] { return tasks::make_task(options); });
  const World world = setup({.backend = options.backend, .device = options.device});
  // The first rank of each node gets its task first.
  auto task = rank0_first([&] { return pending.get(); });
  {
    Trainer trainer(options, world, std::move(task));
    trainer.fit();
    trainer.test();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
