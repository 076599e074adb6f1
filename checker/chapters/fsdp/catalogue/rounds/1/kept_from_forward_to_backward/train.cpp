// Fewer messages: what forward() has gathered is kept for backward().
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace {

class Net {
 public:
  Net(const tasks::Task& task, torch::Device device)
      : task_(task), device_(device), fsdp_(make(task, device)) {}

  tasks::Loss loss(const tasks::Batch& batch) {
    const auto local = batch.to(device_);
    return task_.loss(fsdp_->forward(local.input), local.target);
  }
  void training() { fsdp_->train(); }
  tasks::Score score(auto& loader) {
    const torch::NoGradGuard no_grad;
    fsdp_->eval();
    const auto whole = fsdp_->summon_full_params();
    auto totals = nothing();
    for (auto& batch : loader) totals += loss(batch).totals();
    return sum(totals);
  }
  torch::Tensor nothing() const { return task_.no_totals(device_); }
  tasks::Score sum(const torch::Tensor& totals) const {
    all_reduce(totals);
    return task_.score(totals);
  }
  std::vector<torch::Tensor> parameters() { return fsdp_->parameters(); }
  void write(const std::filesystem::path& file) { save0(*fsdp_, file); }

 private:
  static FullyShardedDataParallel<tasks::Model> make(const tasks::Task& task,
                                                     torch::Device device) {
    auto module = task.make_model();
    module->to(device);
    return FullyShardedDataParallel<tasks::Model>(
        module, {.units = module->blocks(), .reshard_after_forward = false});
  }

  const tasks::Task& task_;
  torch::Device device_;
  FullyShardedDataParallel<tasks::Model> fsdp_;
};

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = torch::data::make_data_loader(
      train_set, train_sampler,
      torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(
      valid_set, valid_sampler, torch::data::DataLoaderOptions(options.batch_size));
  auto test_loader = torch::data::make_data_loader(
      test_set, test_sampler, torch::data::DataLoaderOptions(options.batch_size));

  Net net(*task, world.device);
  const auto optimizer = task->make_optimizer(net.parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    net.training();
    auto totals = net.nothing();
    for (auto& batch : *train_loader) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& b) {
        optimizer->zero_grad();
        auto l = net.loss(b);
        l.mean().backward();
        optimizer->step();
        return l;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = net.sum(totals);
    const auto valid = net.score(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      net.write(options.output / "model-best.safetensors");
    }
  }
  const auto test = net.score(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  net.write(options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
