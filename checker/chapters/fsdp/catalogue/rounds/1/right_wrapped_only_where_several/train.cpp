// One rank alone has nobody to share with: it trains the module as it is. Several ranks wrap it.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

struct Nothing {};

// Whatever must live during an evaluation of this model.
auto whole_for_evaluation(auto& model) {
  if constexpr (requires { model->summon_full_params(); }) {
    return model->summon_full_params();
  } else {
    return Nothing{};
  }
}

class Job {
 public:
  Job(tasks::Options options, World world)
      : options_(std::move(options)), world_(world), task_(tasks::make_task(options_)) {}

  void run() {
    auto module = task_->make_model();
    module->to(world_.device);
    if (world_.world_size == 1) return train(module);
    train(FullyShardedDataParallel(module, {.units = module->blocks()}));
  }

 private:
  void train(auto model) {
    const auto set = task_->dataset("train");
    DistributedSampler sampler(*set.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    auto loader = data::make_data_loader(
        set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto optimizer = task_->make_optimizer(model->parameters());
    tasks::Progress progress(options_, *set.size());
    auto schedule = task_->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task_->no_totals(world_.device);
      for (auto& batch : *loader) {
        const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
          const auto [input, target] = taken.to(world_.device);
          optimizer->zero_grad();
          const auto result = task_->loss(model->forward(input), target);
          result.mean().backward();
          optimizer->step();
          return result;
        });
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      all_reduce(totals);
      const auto trained = task_->score(totals);
      const auto valid = measure(model, "validation");
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = measure(model, "test");
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

  tasks::Score measure(auto& model, const char* split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task_->dataset(split);
    auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_->no_totals(world_.device);
    [[maybe_unused]] const auto whole = whole_for_evaluation(model);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world_.device);
      totals += task_->loss(model->forward(input), target).totals();
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  tasks::Options options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Job(std::move(options), world).run();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
