// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// This process's membership in the group of all ranks: it ends with the object.
struct Session {
  explicit Session(const tasks::Options& options)
      : world(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() { destroy_process_group(); }

  tasks::Score score(const tasks::Task& task, const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  World world;
};

struct Splits {
  explicit Splits(const tasks::Task& task)
      : train(task.dataset("train")),
        validation(task.dataset("validation")),
        test(task.dataset("test")) {}
  tasks::Dataset train, validation, test;
};

template <typename Model, typename Loader>
tasks::Score evaluate(const Session& session, const tasks::Task& task, Model& model,
                      Loader& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(session.world.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(session.world.device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return session.score(task, totals);
}

template <typename Model, typename Loader>
tasks::Score train(const Session& session, const tasks::Task& task, Model& model, Loader& loader,
                   torch::optim::Optimizer& optimizer, tasks::Schedule& schedule,
                   tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(session.world.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(session.world.device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return session.score(task, totals);
}

// The exam at the end: the test split, and what the checker and the monitor want to know of it.
template <typename Model, typename Loader>
tasks::Score examine(Session session, const tasks::Task& task, Model& model, Loader& loader,
                     tasks::Progress& progress) {
  const auto test = evaluate(session, task, model, loader);
  progress.report(test);
  return test;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Session session(options);

  const auto task = tasks::make_task(options);
  const Splits splits(*task);
  DistributedSampler train_sampler(*splits.train.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*splits.validation.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*splits.test.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(splits.train, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(splits.validation, valid_sampler, batches);
  auto test_loader = data::make_data_loader(splits.test, test_sampler, batches);

  const auto module = task->make_model();
  module->to(session.world.device);
  auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *splits.train.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(session, *task, model, *train_loader, *optimizer, *schedule, progress);
    const auto valid = evaluate(session, *task, model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = examine(session, *task, model, *test_loader, progress);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
