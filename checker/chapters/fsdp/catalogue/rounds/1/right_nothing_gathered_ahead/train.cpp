// As little memory as the wrapper allows: nothing is gathered ahead, and gradients are dropped as
// soon as they are used.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;

// Calls what with all parameters whole, and without gradients.
template <typename Model, typename Function>
auto with_whole_model(const Model& model, Function what) {
  const torch::NoGradGuard no_grad;
  const WholeParameters whole = model->summon_full_params();
  return what();
}

template <typename Model, typename Loader>
tasks::Score mean_loss(const tasks::Task& task, const Model& model, Loader& loader,
                       torch::Device device) {
  model->eval();
  const auto own = with_whole_model(model, [&] {
    auto sums = task.no_totals(device);
    for (auto& batch : loader) {
      const auto there = batch.to(device);
      sums += task.loss(model->forward(there.input), there.target).totals();
    }
    return sums;
  });
  return task.score(all_gather(own).sum(0));
}

FullyShardedDataParallelOptions thrifty(const tasks::Model& module, torch::Dtype type) {
  FullyShardedDataParallelOptions result;
  result.units = module.blocks();
  result.mp_policy.param_dtype = type;  // the same as stored
  result.forward_prefetch = 0;
  result.backward_prefetch = 0;
  return result;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;
  const auto task = tasks::make_task(options);

  const auto lessons = task->dataset("train");
  const auto rehearsal = task->dataset("validation");
  const auto exam = task->dataset("test");
  DistributedSampler lesson_order(*lessons.size(),
                                  {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler rehearsal_order(*rehearsal.size(), {.shuffle = false, .pad = false});
  DistributedSampler exam_order(*exam.size(), {.shuffle = false, .pad = false});
  const torch::data::DataLoaderOptions size(options.batch_size);
  auto lesson_loader = torch::data::make_data_loader(
      lessons, lesson_order, torch::data::DataLoaderOptions(size).drop_last(true));
  auto rehearsal_loader = torch::data::make_data_loader(rehearsal, rehearsal_order, size);
  auto exam_loader = torch::data::make_data_loader(exam, exam_order, size);

  const auto module = task->make_model();
  module->to(device);
  const FullyShardedDataParallel<tasks::Model> student(module,
                                                       thrifty(*module, options.precision));
  const auto optimizer = task->make_optimizer(student->parameters());
  tasks::Progress progress(options, *lessons.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto lesson = [&](const tasks::Batch& batch) {
    const auto there = batch.to(device);
    const auto loss = task->loss(student->forward(there.input), there.target);
    loss.mean().backward();
    optimizer->step();
    student->zero_grad(true);
    return loss;
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    lesson_order.set_epoch(epoch);
    student->train();
    auto sums = task->no_totals(device);
    bool more = true;
    for (auto batch = lesson_loader->begin(); more && batch != lesson_loader->end(); ++batch) {
      const auto loss = progress.take_step(*batch, lesson);
      schedule->step();
      sums += loss.totals();
      more = progress.step(loss);
      if (!more) break;
    }
    const auto trained = task->score(all_gather(sums).sum(0));
    const auto valid = mean_loss(*task, student, *rehearsal_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*student, options.output / "model-best.safetensors");
    }
  }
  const auto test = mean_loss(*task, student, *exam_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*student, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
