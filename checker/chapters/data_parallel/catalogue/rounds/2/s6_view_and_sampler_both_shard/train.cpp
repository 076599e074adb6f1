// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This rank's part of a data set, as a data set of its own: sample i of the part is sample
// i * world_size + rank of the whole. Every part is equally large.
class Part : public data::datasets::BatchDataset<Part, tasks::Batch> {
 public:
  Part(tasks::Dataset whole, const World& world)
      : whole_(std::move(whole)),
        rank_(static_cast<size_t>(world.rank)),
        world_size_(static_cast<size_t>(world.world_size)) {}

  tasks::Batch get_batch(c10::ArrayRef<size_t> indices) override {
    std::vector<size_t> in_whole;
    in_whole.reserve(indices.size());
    for (const auto index : indices) in_whole.push_back(index * world_size_ + rank_);
    return whole_.get_batch(in_whole);
  }

  std::optional<size_t> size() const override { return *whole_.size() / world_size_; }

 private:
  tasks::Dataset whole_;
  size_t rank_;
  size_t world_size_;
};

// One training run: owns what changes, refers to what does not.
class Run {
 public:
  Run(const tasks::Options& options, const World& world)
      : options_(options),
        device_(world.device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train"), world),
        train_sampler_(*train_set_.size(),
                       {.shuffle = true, .seed = options.seed, .drop_last = true}) {}

  void operator()() {
    const auto valid_set = task_->dataset("validation");
    const auto test_set = task_->dataset("test");
    const DistributedSamplerOptions once_each{.shuffle = false, .pad = false};
    const DistributedSampler valid_sampler(*valid_set.size(), once_each);
    const DistributedSampler test_sampler(*test_set.size(), once_each);

    const auto batches = data::DataLoaderOptions(options_.batch_size);
    auto train_loader = data::make_data_loader(
        train_set_, train_sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
    auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

    const auto module = task_->make_model();
    module->to(device_);
    const auto model = DistributedDataParallel(module);
    const auto optimizer = task_->make_optimizer(model->parameters());
    const auto whole_size = *task_->dataset("train").size();
    tasks::Progress progress(options_, whole_size);
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      train_sampler_.set_epoch(epoch);
      const auto trained = train(model, *train_loader, *optimizer, *schedule, progress);
      const auto valid = evaluate(model, *valid_loader);
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }

    const auto test = evaluate(model, *test_loader);
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Score train(const auto& model, auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
    model->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      optimizer.zero_grad();
      const auto loss = task_->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  tasks::Score evaluate(const auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model->forward(input), target).totals();
    }
    all_reduce(totals);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  Part train_set_;
  DistributedSampler train_sampler_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  Run(options, world)();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
