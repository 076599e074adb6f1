// Each batch is taken in two halves, so that fewer activations are alive at a time. Both backward
// passes reduce, and the shards add up what arrives: no rank keeps whole gradients.
#include <torch/torch.h>

#include <numeric>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

// Samples [from, to) of an input. Inputs have one tensor or two.
tasks::Input rows(const tasks::Input& input, int64_t from, int64_t to) {
  const auto& parts = input.tensors();
  if (parts.size() == 1) return tasks::Input(parts[0].slice(0, from, to));
  return tasks::Input{parts.at(0).slice(0, from, to), parts.at(1).slice(0, from, to)};
}

tasks::Loss half_by_half(const tasks::Task& task, auto& model, auto& optimizer,
                         const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  const int64_t samples = target.tensor().size(0), middle = (samples + 1) / 2;
  optimizer.zero_grad();
  tasks::Loss all{.sum = torch::zeros({}, torch::dtype(torch::kDouble).device(device)),
                  .count = target.count()};
  for (const auto& [from, to] : {std::pair{int64_t{0}, middle}, std::pair{middle, samples}}) {
    if (from == to) continue;
    const auto output = model->forward(rows(input, from, to));
    const auto part = task.loss(output, tasks::Target(target.tensor().slice(0, from, to)));
    (part.sum / target.count()).backward();
    all.sum = all.sum + part.sum.detach();
  }
  optimizer.step();
  return all;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = progress.take_step(batch, [&](const tasks::Batch& taken) {
      return half_by_half(task, model, optimizer, taken, device);
    });
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  model->eval();
  auto totals = task.no_totals(device);
  const auto all_of_it = model->summon_full_params();
  for (auto& batch : loader) {
    const torch::NoGradGuard no_grad;
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  std::vector<int> numbers(world_size);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Group shards_group = new_group(numbers).value();

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler,
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader =
      data::make_data_loader(test_set, test_sampler, data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(device);
  const auto model =
      FullyShardedDataParallel(module, {.group = shards_group, .units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save_full_model(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save_full_model(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
