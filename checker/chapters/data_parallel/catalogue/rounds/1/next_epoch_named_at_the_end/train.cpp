// Step 04: The ranks train one model.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A slow copy of the weights, for later experiments.
class Average {
 public:
  Average(const torch::nn::Module& model, double decay) : decay_(decay) {
    for (const auto& parameter : model.parameters()) slow_.push_back(parameter.detach().clone());
  }
  void update(const torch::nn::Module& model) {
    const torch::NoGradGuard no_grad;
    const auto fast = model.parameters();
    for (size_t i = 0; i < fast.size(); ++i) slow_[i].lerp_(fast[i], 1 - decay_);
  }
  double distance(const torch::nn::Module& model) const {
    const torch::NoGradGuard no_grad;
    double sum = 0;
    const auto fast = model.parameters();
    for (size_t i = 0; i < fast.size(); ++i)
      sum += (slow_[i] - fast[i]).square().sum().item<double>();
    return std::sqrt(sum);
  }

 private:
  double decay_;
  std::vector<torch::Tensor> slow_;
};

double gradient_norm(const torch::nn::Module& model) {
  double sum = 0;
  for (const auto& parameter : model.parameters())
    if (parameter.grad().defined()) sum += parameter.grad().square().sum().item<double>();
  return std::sqrt(sum);
}

class Trainer {
 public:
  Trainer(const tasks::Options& options, const World& world)
      : options_(options),
        device_(world.device),
        rank_(world.rank),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        train_sampler_(*train_set_.size(),
                       {.shuffle = true, .seed = options.seed, .drop_last = true}),
        train_loader_(data::make_data_loader(
            train_set_, train_sampler_,
            data::DataLoaderOptions(options.batch_size).drop_last(true))),
        valid_loader_(whole("validation")),
        test_loader_(whole("test")),
        model_(on_device(task_->make_model())),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())),
        average_(*model_, 0.99) {}

  void fit() {
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished();) {
      const auto trained = train();
      const auto valid = evaluate(*valid_loader_);
      progress_.report(trained, valid);
      ++epoch;
      train_sampler_.set_epoch(epoch);  // for the pass that comes next
      fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options_.epochs,
                   task_->format(trained), task_->format(valid));
      fmt::println(stderr, "rank {}: largest gradient {:.4g}, distance to the average {:.4g}", rank_,
                   largest_, average_.distance(*model_));
      if (valid < best_) {
        best_ = valid;
        torch::save(model_, options_.output / "model-best.pt");
      }
    }
  }

  void finish() {
    const auto test = evaluate(*test_loader_);
    progress_.report(test);
    fmt::println("best validation loss: {}", task_->describe(best_));
    fmt::println("test loss: {}", task_->describe(test));
    torch::save(model_, options_.output / "model-final.pt");
  }

 private:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;

  std::unique_ptr<Loader> whole(const char* name) const {
    const auto samples = task_->dataset(name);
    return data::make_data_loader(
        samples, DistributedSampler(*samples.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
  }

  DistributedDataParallel<tasks::Model> on_device(std::shared_ptr<tasks::Model> module) const {
    module->to(device_);
    return DistributedDataParallel(module);
  }

  tasks::Score train() {
    model_->train();
    largest_ = 0;
    auto totals = task_->no_totals(device_);
    for (auto& batch : *train_loader_) {
      const auto [input, target] = batch.to(device_);
      optimizer_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      largest_ = std::max(largest_, gradient_norm(*model_));
      optimizer_->step();
      average_.update(*model_);
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_->score(totals);
  }

  tasks::Score evaluate(Loader& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model_->forward(input), target).totals();
    }
    return task_->score(totals);
  }

  const tasks::Options& options_;
  torch::Device device_;
  int rank_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler train_sampler_;
  std::unique_ptr<Loader> train_loader_, valid_loader_, test_loader_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  Average average_;
  tasks::Score best_;
  double largest_ = 0;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  Trainer trainer(options, world);
  trainer.fit();
  trainer.finish();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
