// Whole parameters cost memory, so only the rank that reports gets them.
#include <torch/torch.h>

#include <memory>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;
using Fsdp = du::FullyShardedDataParallel<tasks::Model>;

bool reports() { return du::get_rank() == 0; }

tasks::Score measure(const tasks::Task& task, const Fsdp& model, auto& loader,
                     torch::Device device) {
  const torch::NoGradGuard guard;
  model->eval();
  std::unique_ptr<du::WholeParameters> whole;
  if (reports()) whole.reset(new du::WholeParameters(model->summon_full_params()));
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto moved = batch.to(device);
    totals += task.loss(model->forward(moved.input), moved.target).totals();
  }
  du::all_reduce(totals);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = du::setup({.backend = options.backend, .device = options.device}).device;
  const auto task = tasks::make_task(options);

  const auto study = task->dataset("train");
  du::DistributedSampler study_sampler(
      *study.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto study_loader = torch::data::make_data_loader(
      study, study_sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto exact = [&](const char* name) {
    const auto set = task->dataset(name);
    const du::DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    return torch::data::make_data_loader(set, sampler,
                                         torch::data::DataLoaderOptions(options.batch_size));
  };
  const auto valid_loader = exact("validation"), test_loader = exact("test");

  auto module = task->make_model();
  module->to(device);
  const Fsdp model(module, {.units = module->blocks()});
  auto adam = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *study.size());
  auto schedule = task->make_schedule(*adam, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    study_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *study_loader) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& given) {
        const auto moved = given.to(device);
        model->zero_grad();
        auto value = task->loss(model->forward(moved.input), moved.target);
        value.mean().backward();
        adam->step();
        return value;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    du::all_reduce(totals);
    const auto trained = task->score(totals);
    const auto valid = measure(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      du::save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = measure(*task, model, *test_loader, device);
  progress.report(test);
  du::print0("best validation loss: {}", task->describe(best));
  du::print0("test loss: {}", task->describe(test));
  du::save0(*model, options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
