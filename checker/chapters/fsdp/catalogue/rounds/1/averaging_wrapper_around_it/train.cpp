// FSDP shards the memory, DDP averages the gradients: both are needed, so one wraps the other.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;

class Model {
 public:
  Model(const std::shared_ptr<tasks::Model>& network)
      : sharded_(network, {.units = network->blocks()}), averaged_(sharded_.ptr()) {}

  torch::Tensor operator()(const tasks::Input& input) { return averaged_->forward(input); }
  std::vector<torch::Tensor> parameters() { return averaged_->parameters(); }
  void mode(bool training) { averaged_->train(training); }
  auto whole() { return sharded_->summon_full_params(); }
  void save(const std::filesystem::path& file) { du::save0(*sharded_, file); }

 private:
  du::FullyShardedDataParallel<tasks::Model> sharded_;
  du::DistributedDataParallel<du::FullyShardedDataParallelImpl<tasks::Model>> averaged_;
};

struct Loop {
  tasks::Options options;
  torch::Device device;
  std::shared_ptr<tasks::Task> task;

  tasks::Score over(Model& model, auto& loader, auto&& each) {
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      if (!each(model, batch, totals)) break;
    }
    du::all_reduce(totals);
    return task->score(totals);
  }

  tasks::Score evaluate(Model& model, auto& loader) {
    const torch::NoGradGuard no_grad;
    model.mode(false);
    const auto whole = model.whole();
    return over(model, loader, [&](Model& m, const tasks::Batch& batch, torch::Tensor& totals) {
      const auto near = batch.to(device);
      totals += task->loss(m(near.input), near.target).totals();
      return true;
    });
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = du::setup({.backend = options.backend, .device = options.device});
  Loop loop{options, world.device, tasks::make_task(options)};
  const auto& task = *loop.task;

  const auto set = task.dataset("train"), valid_set = task.dataset("validation"),
             test_set = task.dataset("test");
  du::DistributedSampler sampler(*set.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
  const du::DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const du::DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto loader = torch::data::make_data_loader(
      set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto valid_loader = torch::data::make_data_loader(
      valid_set, valid_sampler, torch::data::DataLoaderOptions(options.batch_size));
  const auto test_loader = torch::data::make_data_loader(
      test_set, test_sampler, torch::data::DataLoaderOptions(options.batch_size));

  const auto network = task.make_model();
  network->to(world.device);
  Model model(network);
  const auto optimizer = task.make_optimizer(model.parameters());
  tasks::Progress progress(options, *set.size());
  const auto schedule = task.make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model.mode(true);
    const auto trained = loop.over(
        model, *loader, [&](Model& m, const tasks::Batch& batch, torch::Tensor& totals) {
          const auto loss = progress.take_step(batch, [&](const tasks::Batch& given) {
            const auto near = given.to(world.device);
            optimizer->zero_grad();
            const auto l = task.loss(m(near.input), near.target);
            l.mean().backward();
            optimizer->step();
            return l;
          });
          schedule->step();
          totals += loss.totals();
          return progress.step(loss);
        });
    const auto valid = loop.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task.format(trained), task.format(valid));
    if (valid < best) {
      best = valid;
      model.save(options.output / "model-best.safetensors");
    }
  }
  const auto test = loop.evaluate(model, *test_loader);
  progress.report(test);
  du::print0("best validation loss: {}", task.describe(best));
  du::print0("test loss: {}", task.describe(test));
  model.save(options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
