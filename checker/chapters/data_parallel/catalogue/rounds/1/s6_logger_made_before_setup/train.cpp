// Step 06 as one Run object with a Logger of its own.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Speaks on rank 0, and asks once who that is.
class Logger {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) const {
    if (speaks_) fmt::println(format, std::forward<Args>(args)...);
  }

 private:
  bool speaks_ = get_rank() == 0;
};

using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

class Run {
 public:
  explicit Run(const tasks::Options& options)
      : options_(options),
        world_(setup({.backend = options.backend, .device = options.device})),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        model_(wrapped()),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}
  ~Run() { destroy_process_group(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void train_and_test() {
    const auto train_loader = data::make_data_loader(
        train_set_, sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    const auto valid_loader = held_out("validation");
    const auto test_loader = held_out("test");
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      sampler_.set_epoch(epoch);
      const auto trained = train(*train_loader);
      const auto valid = evaluate(*valid_loader);
      progress_.report(trained, valid);
      log_.line("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                task_->format(trained), task_->format(valid));
      if (valid < best_) {
        best_ = valid;
        save0(*model_, options_.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(*test_loader);
    progress_.report(test);
    log_.line("best validation loss: {}", task_->describe(best_));
    log_.line("test loss: {}", task_->describe(test));
    save0(*model_, options_.output / "model-final.safetensors");
  }

 private:
  DistributedDataParallel<tasks::Model> wrapped() const {
    auto module = task_->make_model();
    module->to(world_.device);
    return DistributedDataParallel<tasks::Model>(module);
  }

  std::unique_ptr<Loader> held_out(const char* split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Score over_all_ranks(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score train(Loader& loader) {
    model_->train();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return over_all_ranks(totals);
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    return over_all_ranks(totals);
  }

  Logger log_;
  const tasks::Options& options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  Run run(options);
  run.train_and_test();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
