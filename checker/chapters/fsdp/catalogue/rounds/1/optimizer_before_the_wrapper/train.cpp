// My trainer for step 12. Order of construction: model, optimizer, schedule, then the parallel part.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

struct Ingredients {
  std::shared_ptr<tasks::Model> net;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

// As in every serial program: the optimizer belongs to the model that was made.
Ingredients prepare(const tasks::Task& task, torch::Device device) {
  Ingredients made;
  made.net = task.make_model();
  made.net->to(device);
  made.optimizer = task.make_optimizer(made.net->parameters());
  return made;
}

tasks::Score look_at(const tasks::Task& task, auto& fsdp, auto& loader, torch::Device device) {
  torch::NoGradGuard frozen;
  fsdp->eval();
  auto whole = fsdp->summon_full_params();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    auto [x, y] = batch.to(device);
    totals += task.loss(fsdp->forward(x), y).totals();
  }
  all_reduce(totals);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  auto device = setup({.backend = options.backend, .device = options.device}).device;
  auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  DistributedSampler s1(*train_set.size(),
                        {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler s2(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler s3(*test_set.size(), {.shuffle = false, .pad = false});
  torch::data::DataLoaderOptions batches(options.batch_size);
  auto train_loader = torch::data::make_data_loader(
      train_set, s1, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = torch::data::make_data_loader(valid_set, s2, batches);
  auto test_loader = torch::data::make_data_loader(test_set, s3, batches);

  auto made = prepare(*task, device);
  tasks::Progress progress(options, *train_set.size());
  auto schedule = task->make_schedule(*made.optimizer, progress.total_steps());
  FullyShardedDataParallel fsdp(made.net,
                                FullyShardedDataParallelOptions{.units = made.net->blocks()});

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    s1.set_epoch(epoch);
    fsdp->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      auto loss = progress.take_step(batch, [&](const tasks::Batch& b) {
        auto [x, y] = b.to(device);
        made.optimizer->zero_grad();
        auto l = task->loss(fsdp->forward(x), y);
        l.mean().backward();
        made.optimizer->step();
        return l;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals);
    auto trained = task->score(totals);
    auto valid = look_at(*task, fsdp, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*fsdp, options.output / "model-best.safetensors");
    }
  }
  auto test = look_at(*task, fsdp, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*fsdp, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
