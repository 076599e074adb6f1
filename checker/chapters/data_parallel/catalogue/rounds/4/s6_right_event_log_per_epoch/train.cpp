// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What can happen in a run.
struct EpochEnded {
  int64_t number;
  tasks::Score trained;
  tasks::Score valid;
};
struct ModelImproved {};
struct RunEnded {
  tasks::Score best;
  tasks::Score test;
};
using Event = std::variant<EpochEnded, ModelImproved, RunEnded>;

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// The decision alone, without any output: which events follow from an epoch's scores.
std::vector<Event> judge(int64_t number, const tasks::Score& trained, const tasks::Score& valid,
                         tasks::Score& best) {
  std::vector<Event> events{EpochEnded{number, trained, valid}};
  if (valid < best) {
    best = valid;
    events.emplace_back(ModelImproved{});
  }
  return events;
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

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  // The only place with output: lines and files.
  const auto perform = [&](const std::vector<Event>& events) {
    for (const auto& event : events) {
      std::visit(Overloaded{
                     [&](const EpochEnded& epoch) {
                       print0("epoch {}/{}: training loss {}, validation loss {}", epoch.number,
                              options.epochs, task->format(epoch.trained),
                              task->format(epoch.valid));
                     },
                     [&](const ModelImproved&) {
                       save0(*model, options.output / "model-best.safetensors");
                     },
                     [&](const RunEnded& run) {
                       print0("best validation loss: {}", task->describe(run.best));
                       print0("test loss: {}", task->describe(run.test));
                       save0(*model, options.output / "model-final.safetensors");
                     },
                 },
                 event);
    }
  };

  const auto sum_up = [&](const std::vector<torch::Tensor>& log) {
    auto totals = task->no_totals(device);
    for (const auto& entry : log) totals += entry;
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    std::vector<torch::Tensor> log;
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      log.push_back(task->loss(model->forward(input), target).totals());
    }
    return sum_up(log);
  };
  const auto train = [&] {
    model->train();
    std::vector<torch::Tensor> log;
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      log.push_back(loss.totals());
      if (!progress.step(loss)) break;
    }
    return sum_up(log);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    perform(judge(epoch + 1, trained, valid, best));
  }
  const auto test = evaluate(*test_loader);
  progress.report(test);
  perform({RunEnded{best, test}});
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
