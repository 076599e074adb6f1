// The list of units is collected from two sides: what the model says, and what is found inside it.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;
using Units = std::vector<std::shared_ptr<du::Block>>;

void add_named(const tasks::Model& model, Units& into) {
  const auto named = model.blocks();
  into.insert(into.end(), named.begin(), named.end());
}

void add_found(const torch::nn::Module& module, Units& into) {
  for (const auto& child : module.children()) {
    if (auto block = std::dynamic_pointer_cast<du::Block>(child)) into.push_back(std::move(block));
    add_found(*child, into);
  }
}

class ShardedTraining {
 public:
  explicit ShardedTraining(const tasks::Options& options)
      : options_(options),
        device_(du::setup({.backend = options.backend, .device = options.device}).device),
        task_(tasks::make_task(options)),
        data_(task_->dataset("train")),
        sampler_(*data_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        progress_(options, *data_.size()) {}

  int operator()() {
    auto loader = torch::data::make_data_loader(
        data_, sampler_, torch::data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto network = task_->make_model();
    network->to(device_);
    Units units;
    add_named(*network, units);
    add_found(*network, units);
    du::FullyShardedDataParallel<tasks::Model> model(network, {.units = units});
    auto optimizer = task_->make_optimizer(model->parameters());
    auto schedule = task_->make_schedule(*optimizer, progress_.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      sampler_.set_epoch(epoch);
      model->train();
      auto totals = task_->no_totals(device_);
      for (auto& batch : *loader) {
        auto loss = progress_.take_step(batch, [&](const tasks::Batch& b) {
          auto on = b.to(device_);
          optimizer->zero_grad();
          auto value = task_->loss(model->forward(on.input), on.target);
          value.mean().backward();
          optimizer->step();
          return value;
        });
        schedule->step();
        totals += loss.totals();
        if (!progress_.step(loss)) break;
      }
      du::all_reduce(totals);
      auto trained = task_->score(totals), valid = evaluate(model, "validation");
      progress_.report(trained, valid);
      du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
                 task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        du::save0(*model, options_.output / "model-best.safetensors");
      }
    }
    auto test = evaluate(model, "test");
    progress_.report(test);
    du::print0("best validation loss: {}", task_->describe(best));
    du::print0("test loss: {}", task_->describe(test));
    du::save0(*model, options_.output / "model-final.safetensors");
    du::destroy_process_group();
    return 0;
  }

 private:
  tasks::Score evaluate(auto& model, const char* split) {
    torch::NoGradGuard no_grad;
    model->eval();
    auto set = task_->dataset(split);
    auto loader = torch::data::make_data_loader(
        set, du::DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options_.batch_size));
    auto totals = task_->no_totals(device_);
    auto whole = model->summon_full_params();
    for (auto& batch : *loader) {
      auto on = batch.to(device_);
      totals += task_->loss(model->forward(on.input), on.target).totals();
    }
    du::all_reduce(totals);
    return task_->score(totals);
  }

  tasks::Options options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset data_;
  du::DistributedSampler sampler_;
  tasks::Progress progress_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  return ShardedTraining(options)();
} catch (const std::exception& error) {
  return tasks::report(error);
}
