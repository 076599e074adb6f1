// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The ranks in a circle: everybody hands to the right and takes from the left.
class Ring {
 public:
  explicit Ring(const World& world)
      : size_(world.world_size),
        right_((world.rank + 1) % world.world_size),
        left_((world.rank + world.world_size - 1) % world.world_size) {}

  // The sum over all ranks. After size - 1 turns everybody's part has come past everybody.
  torch::Tensor sum(const torch::Tensor& mine) const {
    auto sum = mine.clone();
    for (int turn = 1; turn < size_; ++turn) sum += exchange(sum);
    return sum;
  }

 private:
  torch::Tensor exchange(const torch::Tensor& outgoing) const {
    auto sending = send_async(outgoing, right_);
    auto incoming = torch::empty_like(outgoing);
    recv(incoming, left_);
    sending.wait();
    return incoming;
  }

  int size_;
  int right_;
  int left_;
};

struct Context {
  std::shared_ptr<const tasks::Task> task;
  torch::Device device;
  Ring ring;
};

tasks::Loss train_step(const Context& context, auto& model, auto& optimizer,
                       const tasks::Batch& batch) {
  const auto [input, target] = batch.to(context.device);
  optimizer.zero_grad();
  auto loss = context.task->loss(model->forward(input), target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score train(const Context& context, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, tasks::Progress& progress) {
  model->train();
  auto totals = context.task->no_totals(context.device);
  for (auto& batch : loader) {
    const auto loss = train_step(context, model, optimizer, batch);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return context.task->score(context.ring.sum(totals));
}

tasks::Score evaluate(const Context& context, auto& model, auto& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = context.task->no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    totals += context.task->loss(model->forward(input), target).totals();
  }
  return context.task->score(context.ring.sum(totals));
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const Context context{task, world.device, Ring(world)};
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

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train(context, model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(context, model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(context, model, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
