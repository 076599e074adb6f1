// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The program's only way to say something. Whether this rank speaks is settled once, not at every
// line.
class Console {
 public:
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (speaks_) fmt::println(format, std::forward<Args>(args)...);
  }

 private:
  const bool speaks_ = get_rank() == 0;
};

class Application {
 public:
  Application(int argc, char** argv) : options_(tasks::parse_options(argc, argv)) {
    tasks::apply(options_);
  }

  int run() {
    device_ = setup({.backend = options_.backend, .device = options_.device}).device;
    task_ = tasks::make_task(options_);
    const auto train_set = task_->dataset("train");
    DistributedSampler sampler(*train_set.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    auto train_loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto valid_loader = loader_for_evaluation("validation");
    auto test_loader = loader_for_evaluation("test");

    const auto module = task_->make_model();
    module->to(device_);
    const auto model = DistributedDataParallel(module);
    const auto optimizer = task_->make_optimizer(model->parameters());
    tasks::Progress progress(options_, *train_set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      const auto trained = train(model, *train_loader, *optimizer, *schedule, progress);
      const auto valid = evaluate(model, *valid_loader);
      progress.report(trained, valid);
      console_.say("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                   options_.epochs, task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }

    const auto test = evaluate(model, *test_loader);
    progress.report(test);
    console_.say("best validation loss: {}", task_->describe(best));
    console_.say("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
    destroy_process_group();
    return 0;
  }

 private:
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>>
  loader_for_evaluation(std::string_view split) const {
    const auto set = task_->dataset(split);
    DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    return data::make_data_loader(set, sampler, data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Loss loss_of(const auto& model, const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    return task_->loss(model->forward(input), target);
  }

  tasks::Score train(const auto& model, auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const auto loss = loss_of(model, batch);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score evaluate(const auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) totals += loss_of(model, batch).totals();
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  Console console_;
  tasks::Options options_;
  torch::Device device_ = torch::kCPU;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  return Application(argc, argv).run();
} catch (const std::exception& error) {
  return tasks::report(error);
}
