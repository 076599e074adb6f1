// I write files myself: the state dict of the model, by rank 0.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;

class Archive {
 public:
  explicit Archive(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void keep(const torch::nn::Module& model, const std::string& name) const {
    if (du::get_rank() != 0) return;
    du::save_file(du::state_dict(model), folder_ / (name + ".safetensors"));
  }

 private:
  std::filesystem::path folder_;
};

struct Sets {
  tasks::Dataset train, validation, test;
  explicit Sets(const tasks::Task& task)
      : train(task.dataset("train")),
        validation(task.dataset("validation")),
        test(task.dataset("test")) {}
};

tasks::Score evaluate(const tasks::Task& task, auto& model, const tasks::Dataset& set,
                      int64_t batch_size, torch::Device device) {
  auto loader = torch::data::make_data_loader(
      set, du::DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
      torch::data::DataLoaderOptions(batch_size));
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  {
    const auto whole = model->summon_full_params();
    for (auto& batch : *loader) {
      const auto b = batch.to(device);
      totals += task.loss(model->forward(b.input), b.target).totals();
    }
  }
  du::all_reduce(totals);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = du::setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const Sets sets(*task);
  const Archive archive(options.output);

  du::DistributedSampler sampler(*sets.train.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto loader = torch::data::make_data_loader(
      sets.train, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto module = task->make_model();
  module->to(world.device);
  auto model = du::FullyShardedDataParallel(module, {.units = module->blocks()});
  auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *sets.train.size());
  auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      auto loss = progress.take_step(batch, [&](const tasks::Batch& raw) {
        auto b = raw.to(world.device);
        optimizer->zero_grad();
        auto l = task->loss(model->forward(b.input), b.target);
        l.mean().backward();
        optimizer->step();
        return l;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    du::all_reduce(totals);
    auto trained = task->score(totals);
    auto valid = evaluate(*task, model, sets.validation, options.batch_size, world.device);
    progress.report(trained, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      archive.keep(*model, "model-best");
    }
  }
  auto test = evaluate(*task, model, sets.test, options.batch_size, world.device);
  progress.report(test);
  du::print0("best validation loss: {}", task->describe(best));
  du::print0("test loss: {}", task->describe(test));
  archive.keep(*model, "model-final");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
