// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <variant>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The phases of a run. Each one's visit returns the next.
struct Training {
  int64_t epoch;
};
struct Validation {
  int64_t epoch;
  tasks::Score trained;
};
struct Testing {};
struct Done {};
using Phase = std::variant<Training, Validation, Testing, Done>;

class Run {
 public:
  Run(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(),
                 {.shuffle = true, .seed = options.seed, .drop_last = true}),
        train_loader_(data::make_data_loader(
            train_set_, sampler_, data::DataLoaderOptions(options.batch_size).drop_last(true))),
        valid_loader_(loader_of("validation")),
        test_loader_(loader_of("test")),
        module_(task_->make_model()),
        model_((module_->to(device), module_)),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  Phase operator()(const Training& phase) {
    sampler_.set_epoch(static_cast<uint64_t>(phase.epoch));
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *train_loader_) {
      optimizer_->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return Validation{phase.epoch, score_of_all(totals)};
  }

  Phase operator()(const Validation& phase) {
    const auto valid = evaluate(*valid_loader_);
    progress_.report(phase.trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", phase.epoch + 1, options_.epochs,
           task_->format(phase.trained), task_->format(valid));
    if (valid < best_) {
      best_ = valid;
      save0(*model_, options_.output / "model-best.safetensors");
    }
    return after_epoch(phase.epoch);
  }

  Phase operator()(const Testing&) {
    const auto test = evaluate(*test_loader_);
    progress_.report(test);
    print0("best validation loss: {}", task_->describe(best_));
    print0("test loss: {}", task_->describe(test));
    save0(*model_, options_.output / "model-final.safetensors");
    return Done{};
  }

  Phase operator()(const Done&) { return Done{}; }

  // The first phase, and what follows an epoch.
  Phase after_epoch(int64_t epoch) const {
    if (epoch + 1 < options_.epochs && !progress_.finished()) return Training{epoch + 1};
    return Testing{};
  }

 private:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  std::unique_ptr<Loader> loader_of(std::string_view split) const {
    const auto set = task_->dataset(split);
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    return data::make_data_loader(set, sampler, data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_->loss(model_->forward(input), target);
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return score_of_all(totals);
  }

  // Every rank gets everybody's totals and adds them up in the order of ranks.
  tasks::Score score_of_all(const torch::Tensor& totals) const {
    return task_->score(all_gather(totals).sum(0));
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::unique_ptr<Loader> train_loader_, valid_loader_, test_loader_;
  std::shared_ptr<tasks::Model> module_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  {
    Run run(options, world.device);
    auto phase = run.after_epoch(-1);
    while (!std::holds_alternative<Done>(phase)) phase = std::visit(run, phase);
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
