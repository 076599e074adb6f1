#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Divides by the mean number of targets of all ranks. Asking the other ranks in every step would
// cost a message each, so it asks once.
class Normalizer {
 public:
  torch::Tensor operator()(const tasks::Loss& loss) {
    if (!mean_) {
      auto count = torch::full({}, double(loss.count),
                               torch::dtype(torch::kDouble).device(loss.sum.device()));
      all_reduce(count, ReduceOp::AVG);
      mean_ = count;
    }
    return loss.sum / *mean_;
  }

 private:
  std::optional<torch::Tensor> mean_;
};

class Engine {
 public:
  explicit Engine(const tasks::Options& options)
      : options_(options),
        world_(setup({.backend = options.backend, .device = options.device})),
        task_(rank0_first([&options] { return tasks::make_task(options); })) {}

  void go() {
    const auto train_set = task_->dataset("train");
    const auto valid_set = task_->dataset("validation");
    const auto test_set = task_->dataset("test");
    DistributedSampler sampler(*train_set.size(), {.seed = options_.seed, .drop_last = true});
    const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
    const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
    const auto batches = data::DataLoaderOptions(options_.batch_size);
    auto train_loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
    auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

    const auto module = task_->make_model();
    module->to(world_.device);
    tasks::Checkpointing checkpoints(options_);
    const auto model =
        DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
    const auto optimizer = task_->make_optimizer(
        model->parameters(), {.learning_rate_factor = std::sqrt(double(world_.world_size))});
    tasks::Progress progress(options_, *train_set.size());
    const auto schedule = task_->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    const auto first = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);

    for (auto epoch = first; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = checkpoints.begin_epoch(task_->no_totals(world_.device));
      for (auto& batch : *train_loader) {
        const auto [input, target] = batch.to(world_.device);
        optimizer->zero_grad();
        const auto loss = task_->loss(model->forward(input), target);
        normalized_(loss).backward();
        optimizer->step();
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
        checkpoints.step(totals);
      }
      const auto trained = total(totals);
      for (auto& [name, buffer] : module->named_buffers().pairs()) broadcast(buffer, 0);
      const auto valid = look(model, *valid_loader);
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(trained), task_->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = look(model, *test_loader);
    progress.report(test);
    print0("best validation loss: {}", task_->describe(best));
    print0("test loss: {}", task_->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Score total(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score look(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_->no_totals(world_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world_.device);
      totals += task_->loss(model->forward(input), target).totals();
    }
    return total(totals);
  }

  const tasks::Options& options_;
  World world_;
  std::shared_ptr<tasks::Task> task_;
  Normalizer normalized_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  {
    Engine engine(options);
    engine.go();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
