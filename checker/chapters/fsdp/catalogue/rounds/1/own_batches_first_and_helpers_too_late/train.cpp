// Step 12, without summon_full_params(): all ranks make the same number of forward passes instead.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using Net = FullyShardedDataParallel<tasks::Model>;

namespace {

int64_t largest_on_any_rank(int64_t mine, torch::Device device) {
  const auto number = torch::full({1}, mine, torch::dtype(torch::kInt64).device(device));
  all_reduce(number, ReduceOp::MAX);
  return number.item<int64_t>();
}

tasks::Score validate(const tasks::Task& task, Net& net, const tasks::Dataset& set, auto& loader,
                      torch::Device device) {
  torch::NoGradGuard guard;
  net->eval();
  auto sums = task.no_totals(device);
  int64_t passes = 0;
  for (auto& batch : loader) {
    const auto [x, y] = batch.to(device);
    sums += task.loss(net->forward(x), y).totals();
    ++passes;
  }
  // The forward gathers, and a gather needs everybody. So a rank that has run out of data helps the
  // others with a sample that does not count.
  const auto needed = largest_on_any_rank(passes, device);
  if (passes < needed) {
    auto copy = set;
    const auto filler = copy.get_batch(std::vector<size_t>{0}).to(device);
    for (; passes < needed; ++passes) net->forward(filler.input);
  }
  all_reduce(sums, ReduceOp::SUM);
  return task.score(sums);
}

tasks::Score fit(const tasks::Task& task, Net& net, auto& loader, torch::optim::Optimizer& adam,
                 tasks::Schedule& rates, torch::Device device, tasks::Progress& bar) {
  net->train();
  auto sums = task.no_totals(device);
  const auto one_step = [&](const tasks::Batch& cpu_batch) {
    const auto [x, y] = cpu_batch.to(device);
    adam.zero_grad();
    auto loss = task.loss(net->forward(x), y);
    loss.mean().backward();
    adam.step();
    return loss;
  };
  for (auto& batch : loader) {
    const auto loss = bar.take_step(batch, one_step);
    rates.step();
    sums += loss.totals();
    if (!bar.step(loss)) break;
  }
  all_reduce(sums, ReduceOp::SUM);
  return task.score(sums);
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto here = setup({.backend = options.backend, .device = options.device});
  const auto device = here.device;
  const auto task = tasks::make_task(options);

  const auto a = task->dataset("train");
  const auto b = task->dataset("validation");
  const auto c = task->dataset("test");
  DistributedSampler sa(*a.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler sb(*b.size(), {.shuffle = false, .pad = false});
  DistributedSampler sc(*c.size(), {.shuffle = false, .pad = false});
  const auto full = torch::data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto any = torch::data::DataLoaderOptions(options.batch_size);
  auto la = torch::data::make_data_loader(a, sa, full);
  auto lb = torch::data::make_data_loader(b, sb, any);
  auto lc = torch::data::make_data_loader(c, sc, any);

  const auto body = task->make_model();
  body->to(device);
  FullyShardedDataParallelOptions how;
  how.units = body->blocks();
  Net net(body, how);
  const auto adam = task->make_optimizer(net->parameters());

  tasks::Progress bar(options, *a.size());
  const auto rates = task->make_schedule(*adam, bar.total_steps());
  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !bar.finished()) {
    sa.set_epoch(epoch);
    const auto fitted = fit(*task, net, *la, *adam, *rates, device, bar);
    const auto valid = validate(*task, net, b, *lb, device);
    bar.report(fitted, valid);
    ++epoch;
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
           task->format(fitted), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    save0(*net, options.output / "model-best.safetensors");
  }
  const auto tested = validate(*task, net, c, *lc, device);
  bar.report(tested);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(tested));
  save0(*net, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
