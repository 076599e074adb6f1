// Step 06: One rank speaks, one rank writes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// A model as it was at one moment, apart from the one that goes on training.
struct Snapshot {
  StateDict tensors;

  static Snapshot of(const torch::nn::Module& module) {
    const torch::NoGradGuard no_grad;
    Snapshot snapshot;
    for (const auto& [name, tensor] : state_dict(module)) {
      snapshot.tensors[name] = tensor.detach().clone();
    }
    return snapshot;
  }
};

// All that goes out of the program. Rank 0's has a voice and a pen, others have neither.
class Outlet {
 public:
  Outlet(int rank, std::filesystem::path folder) : open_(rank == 0), folder_(std::move(folder)) {}

  void say(const std::string& line) const {
    if (open_) fmt::println("{}", line);
  }
  void write(const Snapshot& snapshot, const std::string& name) const {
    if (open_) save_file(snapshot.tensors, folder_ / (name + ".safetensors"));
  }

 private:
  bool open_;
  std::filesystem::path folder_;
};

// The best epoch so far. It takes a snapshot with a better score, and gives it away once.
class Champion {
 public:
  void challenge(const tasks::Score& score, const torch::nn::Module& module) {
    if (!(score < best_)) return;
    best_ = score;
    fresh_ = Snapshot::of(module);
  }
  std::optional<Snapshot> take_fresh() { return std::exchange(fresh_, std::nullopt); }
  const tasks::Score& score() const { return best_; }

 private:
  tasks::Score best_;
  std::optional<Snapshot> fresh_;
};

tasks::Score train(const tasks::Task& task, const auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, const auto& model, auto& loader,
                      torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  const Outlet outlet(world.rank, options.output);

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
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, options.batch_size);
  auto test_loader = data::make_data_loader(test_set, test_sampler, options.batch_size);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  Champion champion;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    champion.challenge(valid, *model);
    progress.report(trained, valid);
    outlet.say(fmt::format("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                           options.epochs, task->format(trained), task->format(valid)));
    if (const auto snapshot = champion.take_fresh()) outlet.write(*snapshot, "model-best");
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  outlet.say("best validation loss: " + task->describe(champion.score()));
  outlet.say("test loss: " + task->describe(test));
  outlet.write(Snapshot::of(*model), "model-final");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
