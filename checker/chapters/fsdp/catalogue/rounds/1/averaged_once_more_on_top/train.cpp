// As in step 08: what backward leaves is averaged over the ranks, parameter by parameter.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;

void average_gradients(const std::vector<torch::Tensor>& parameters) {
  std::vector<du::Work> under_way;
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    under_way.push_back(du::all_reduce_async(parameter.grad(), du::ReduceOp::AVG));
  }
  for (auto& work : under_way) work.wait();
}

int main(int argc, char** argv) try {
  auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  auto world = du::setup({.backend = options.backend, .device = options.device});
  auto device = world.device;
  auto task = tasks::make_task(options);

  auto train_set = task->dataset("train");
  du::DistributedSampler sampler(*train_set.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = torch::data::make_data_loader(
      train_set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto net = task->make_model();
  net->to(device);
  auto model = du::FullyShardedDataParallel(net, {.units = net->blocks()});
  auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  auto evaluate = [&](const char* split) {
    torch::NoGradGuard no_grad;
    auto set = task->dataset(split);
    auto loader = torch::data::make_data_loader(
        set, du::DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options.batch_size));
    model->eval();
    auto everything = model->summon_full_params();
    auto totals = task->no_totals(device);
    for (auto& batch : *loader) {
      auto moved = batch.to(device);
      totals += task->loss(model->forward(moved.input), moved.target).totals();
    }
    du::all_reduce(totals);
    return task->score(totals);
  };

  auto train_step = [&](const tasks::Batch& batch) {
    auto moved = batch.to(device);
    optimizer->zero_grad();
    auto loss = task->loss(model->forward(moved.input), moved.target);
    loss.mean().backward();
    average_gradients(model->parameters());
    optimizer->step();
    return loss;
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      auto loss = progress.take_step(batch, train_step);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    du::all_reduce(totals);
    auto trained = task->score(totals);
    auto valid = evaluate("validation");
    progress.report(trained, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      du::save0(*model, options.output / "model-best.safetensors");
    }
  }
  auto test = evaluate("test");
  progress.report(test);
  du::print0("best validation loss: {}", task->describe(best));
  du::print0("test loss: {}", task->describe(test));
  du::save0(*model, options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
