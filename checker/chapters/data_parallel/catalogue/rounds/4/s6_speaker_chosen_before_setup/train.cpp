// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Where lines go. Tests hand in one that collects them.
using Sink = std::function<void(std::string_view)>;

Sink silence() {
  return [](std::string_view) {};
}
Sink console() {
  return [](std::string_view line) {
    fmt::println("{}", line);
    std::fflush(stdout);
  };
}
// Rank 0 speaks, others are silent.
Sink first_rank_only() { return get_rank() == 0 ? console() : silence(); }

// Says what happens, in the course's words.
class Reporter {
 public:
  explicit Reporter(Sink sink) : sink_(std::move(sink)) {}

  void epoch(const tasks::Task& task, int64_t number, int64_t of, const tasks::Score& trained,
             const tasks::Score& valid) const {
    sink_(fmt::format("epoch {}/{}: training loss {}, validation loss {}", number, of,
                      task.format(trained), task.format(valid)));
  }
  void end(const tasks::Task& task, const tasks::Score& best, const tasks::Score& test) const {
    sink_(fmt::format("best validation loss: {}", task.describe(best)));
    sink_(fmt::format("test loss: {}", task.describe(test)));
  }

 private:
  Sink sink_;
};

// What the trainer needs from outside, made in one place.
struct Services {
  tasks::Options options;
  Reporter reporter;
};

Services make_services(int argc, char** argv) {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  return {options, Reporter(first_rank_only())};
}

tasks::Score over_ranks(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

void work(const Services& services, const World& world) {
  const auto& options = services.options;
  const auto& reporter = services.reporter;
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

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return over_ranks(*task, totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = over_ranks(*task, totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    reporter.epoch(*task, epoch + 1, options.epochs, trained, valid);
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  reporter.end(*task, best, test);
  save0(*model, options.output / "model-final.safetensors");
}

int main(int argc, char** argv) try {
  const auto services = make_services(argc, argv);
  const auto world = setup({.backend = services.options.backend,
                            .device = services.options.device});
  work(services, world);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
