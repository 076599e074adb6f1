// Step 04: gradients travel in buckets, several at a time.

#include <fmt/format.h>
#include <torch/torch.h>

#include <deque>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Some gradients in one tensor, on their way.
struct Parcel {
  std::vector<torch::Tensor> gradients;
  torch::Tensor flat;
  Work work;

  static Parcel send(std::vector<torch::Tensor> gradients) {
    std::vector<torch::Tensor> rows;
    for (const auto& gradient : gradients) rows.push_back(gradient.flatten());
    auto flat = torch::cat(rows);
    auto work = all_reduce_async(flat, ReduceOp::SUM);
    return {std::move(gradients), flat, std::move(work)};
  }

  void unpack(double divisor) {
    work.wait();
    flat.div_(divisor);
    int64_t from = 0;
    for (auto& gradient : gradients) {
      gradient.copy_(flat.slice(0, from, from + gradient.numel()).view_as(gradient));
      from += gradient.numel();
    }
  }
};

// Parameters whose gradients travel together. Fixed at the start, last parameters first.
std::vector<std::vector<torch::Tensor>> plan_buckets(const torch::nn::Module& module,
                                                     int64_t elements) {
  auto parameters = module.parameters();
  std::vector<std::vector<torch::Tensor>> buckets;
  int64_t room = 0;
  for (auto at = parameters.rbegin(); at != parameters.rend(); ++at) {
    if (room <= 0) {
      buckets.emplace_back();
      room = elements;
    }
    buckets.back().push_back(*at);
    room -= at->numel();
  }
  return buckets;
}

void average_gradients(const std::vector<std::vector<torch::Tensor>>& buckets) {
  std::deque<Parcel> parcels;
  for (const auto& bucket : buckets) {
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : bucket) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    if (!gradients.empty()) parcels.push_back(Parcel::send(std::move(gradients)));
  }
  for (auto& parcel : parcels) parcel.unpack(get_world_size());
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(device);
  for (const auto& parameter : model->parameters()) broadcast(parameter.detach(), 0);
  for (const auto& buffer : model->buffers()) broadcast(buffer, 0);
  const auto buckets = plan_buckets(*model, 1 << 16);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      average_gradients(buckets);
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
