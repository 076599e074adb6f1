#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// All that one might want to tune, in one place.
struct Recipe {
  tasks::Options options;
  size_t batch_size = static_cast<size_t>(options.batch_size);
  tasks::OptimizerOptions optimizer{.learning_rate_factor = std::sqrt(double(get_world_size()))};
  DistributedSamplerOptions training{.shuffle = true, .seed = options.seed, .drop_last = true};
  DistributedSamplerOptions evaluation{.shuffle = false, .pad = false};
  Buffers statistics = Buffers::first_rank;
};

class Experiment {
 public:
  explicit Experiment(Recipe recipe) : recipe_(std::move(recipe)) {
    const World world =
        setup({.backend = recipe_.options.backend, .device = recipe_.options.device});
    device_ = world.device;
    task_ = rank0_first([this] { return tasks::make_task(recipe_.options); });
  }
  ~Experiment() {
    task_.reset();
    destroy_process_group();
  }
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  void run() {
    const auto train_set = task_->dataset("train");
    DistributedSampler sampler(*train_set.size(), recipe_.training);
    auto loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(recipe_.batch_size).drop_last(true));
    const auto module = task_->make_model();
    module->to(device_);
    tasks::Checkpointing checkpoints(recipe_.options);
    const auto model =
        DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
    const auto optimizer = task_->make_optimizer(model->parameters(), recipe_.optimizer);
    tasks::Progress progress(recipe_.options, *train_set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
    for (; epoch < recipe_.options.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = checkpoints.begin_epoch(task_->no_totals(device_));
      for (auto& batch : *loader) {
        const auto loss = step(model, *optimizer, batch);
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
        checkpoints.step(totals);
      }
      const auto trained = summed(totals);
      synchronize_buffers(*model, recipe_.statistics);
      const auto valid = score(model, "validation");
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, recipe_.options.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, recipe_.options.output / "model-best.safetensors");
      }
    }
    const auto test = score(model, "test");
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, recipe_.options.output / "model-final.safetensors");
  }

 private:
  tasks::Loss step(auto& model, auto& optimizer, const tasks::Batch& batch) const {
    const auto [input, target] = batch.to(device_);
    optimizer.zero_grad();
    const auto loss = task_->loss(model->forward(input), target);
    auto targets = torch::full({}, double(loss.count), torch::kDouble).to(device_);
    all_reduce(targets, ReduceOp::AVG);
    (loss.sum / targets).backward();
    optimizer.step();
    return loss;
  }

  tasks::Score summed(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score score(auto& model, const char* split) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task_->dataset(split);
    auto loader = data::make_data_loader(set, DistributedSampler(*set.size(), recipe_.evaluation),
                                         data::DataLoaderOptions(recipe_.batch_size));
    auto totals = task_->no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_->loss(model->forward(input), target).totals();
    }
    return summed(totals);
  }

  Recipe recipe_;
  torch::Device device_ = torch::kCPU;
  std::shared_ptr<tasks::Task> task_;
};

int main(int argc, char** argv) try {
  Recipe recipe{tasks::parse_options(argc, argv, {.checkpoints = true})};
  tasks::apply(recipe.options);
  Experiment experiment(std::move(recipe));
  experiment.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
