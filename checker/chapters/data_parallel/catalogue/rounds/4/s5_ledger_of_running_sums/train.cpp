// Step 05: The reported loss is everybody's.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// An account book of one split. Entries are only ever added. What a pass came to is the difference
// between two balances, so nothing has to be set back to zero.
class Ledger {
 public:
  Ledger(const tasks::Task& task, torch::Device device)
      : task_(task), balance_(task.no_totals(device)), closed_(task.no_totals(device)) {}

  void enter(const tasks::Loss& loss) { balance_ += loss.totals(); }

  // Closes the books of a pass, over all ranks, and returns its score.
  tasks::Score close() {
    all_reduce(balance_, ReduceOp::SUM);
    const auto pass = balance_ - closed_;
    closed_ = balance_.clone();
    return task_.score(pass);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor balance_;
  torch::Tensor closed_;
};

template <typename Model, typename Loader>
void evaluate(const tasks::Task& task, const Model& model, Loader& loader, torch::Device device,
              Ledger& ledger) {
  const torch::NoGradGuard no_grad;
  model->eval();
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    ledger.enter(task.loss(model->forward(input), target));
  }
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
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto batches = data::DataLoaderOptions(options.batch_size);
  const auto full_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  auto train_loader = data::make_data_loader(train_set, train_sampler, full_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Ledger training(*task, device);
  Ledger validation(*task, device);
  Ledger testing(*task, device);

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    train_sampler.set_epoch(epoch);
    model->train();
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      training.enter(loss);
      if (!progress.step(loss)) break;
    }
    const auto trained = training.close();

    evaluate(*task, model, *valid_loader, device, validation);
    const auto valid = validation.close();

    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  evaluate(*task, model, *test_loader, device, testing);
  const auto test = testing.close();
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
