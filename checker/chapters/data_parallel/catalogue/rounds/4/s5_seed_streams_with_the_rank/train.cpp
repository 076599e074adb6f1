// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include <string_view>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Everything random takes its seed from here, by name, so that a test can say which. A pure
// function of the run's seed, the place and the purpose.
class Seeds {
 public:
  Seeds(uint64_t seed, const World& world) : base_(seed + 1000 * uint64_t(world.rank)) {}

  uint64_t of(std::string_view purpose) const {
    if (purpose == "order") return base_;
    return base_ + 17 * purpose.size();
  }

 private:
  uint64_t base_;
};

// A split with the sampler that deals it out and the loader that reads it.
struct Split {
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  DistributedSampler sampler;
  std::unique_ptr<Loader> loader;

  Split(const tasks::Dataset& set, const DistributedSamplerOptions& dealing,
        const data::DataLoaderOptions& batching)
      : sampler(*set.size(), dealing), loader(data::make_data_loader(set, sampler, batching)) {}
};

class Run {
 public:
  Run(const tasks::Options& options, const World& world)
      : options_(options),
        seeds_(options.seed, world),
        device_(world.device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        train_(train_set_, {.shuffle = true, .seed = seeds_.of("order"), .drop_last = true},
               data::DataLoaderOptions(options.batch_size).drop_last(true)),
        valid_(task_->dataset("validation"), {.shuffle = false, .pad = false}, batching()),
        test_(task_->dataset("test"), {.shuffle = false, .pad = false}, batching()),
        model_(placed(task_->make_model())),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void operator()() {
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      train_.sampler.set_epoch(epoch);
      const auto trained = train();
      const auto valid = evaluate(valid_);
      progress_.report(trained, valid);
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                   options_.epochs, task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
    const auto test = evaluate(test_);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  data::DataLoaderOptions batching() const { return data::DataLoaderOptions(options_.batch_size); }

  std::shared_ptr<tasks::Model> placed(std::shared_ptr<tasks::Model> module) const {
    module->to(device_);
    return module;
  }

  tasks::Score train() {
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *train_.loader) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  tasks::Score evaluate(Split& split) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *split.loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  Seeds seeds_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  Split train_, valid_, test_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Run(options, world)();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
