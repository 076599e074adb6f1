#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "tasks/checkpointing.hpp"
#include "tasks/prepared.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace std::chrono_literals;

namespace data = torch::data;
namespace fs = std::filesystem;

// A number that no earlier run had, the same on all ranks.
int64_t number_of_this_run(torch::Device device) {
  const auto number = torch::tensor({int64_t{std::random_device{}()}}, torch::kLong).to(device);
  broadcast(number, 0);
  return number.item<int64_t>();
}

// The first rank of a node leaves a file when its task is made. The others look for it, and make
// theirs when it is there. The file's name is this run's and this node's.
class NodeSignal {
 public:
  explicit NodeSignal(const World& world)
      : first_(world.local_rank == 0),
        file_(tasks::cache_folder() / fmt::format("ready-{}-{}", number_of_this_run(world.device),
                                                  world.rank - world.local_rank)) {
    fs::create_directories(file_.parent_path());
  }

  std::shared_ptr<tasks::Task> make(const std::function<std::shared_ptr<tasks::Task>()>& work) {
    if (!first_) wait();
    auto task = work();
    if (first_) std::ofstream(file_) << "ready\n";
    barrier();
    if (first_) fs::remove(file_);
    return task;
  }

 private:
  void wait() const {
    const auto latest = std::chrono::steady_clock::now() + 10min;
    while (!fs::exists(file_)) {
      if (std::chrono::steady_clock::now() > latest)
        throw std::runtime_error("the first rank of this node did not prepare the data");
      std::this_thread::sleep_for(10ms);
    }
  }

  bool first_;
  fs::path file_;
};

struct Phase {
  std::string name;
  std::function<void()> run;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = NodeSignal(world).make([&] { return tasks::make_task(options); });

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions in_order{.shuffle = false, .pad = false};
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader =
      data::make_data_loader(valid_set, DistributedSampler(*valid_set.size(), in_order),
                             data::DataLoaderOptions(options.batch_size));
  auto test_loader =
      data::make_data_loader(test_set, DistributedSampler(*test_set.size(), in_order),
                             data::DataLoaderOptions(options.batch_size));
  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const double root = std::exp(0.5 * std::log(double(world.world_size)));
  const auto optimizer = task->make_optimizer(model->parameters(), {.learning_rate_factor = root});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best, trained, valid;

  const auto summed = [&](torch::Tensor totals) {
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(world.device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return summed(totals);
  };

  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  const auto learn = [&] {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      // All divide by the number that rank 0 has worked out.
      auto mean = all_gather(torch::full({}, double(loss.count),
                                         torch::dtype(torch::kDouble).device(world.device)))
                      .mean();
      broadcast(mean, 0);
      // The gradient of sum / mean, without another node in the graph.
      loss.sum.backward((1 / mean).to(loss.sum.dtype()));
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    trained = summed(totals);
  };
  const auto tell = [&] {
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
  };
  const auto keep = [&] {
    if (!(valid < best)) return;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  };
  const std::vector<Phase> phases = {
      {"learn", learn},
      {"same statistics", [&] { synchronize_buffers(*module, Buffers::mean, world_group()); }},
      {"validate", [&] { valid = evaluate(*valid_loader); }},
      {"tell", tell},
      {"keep", keep},
  };
  for (; epoch < options.epochs && !progress.finished(); ++epoch)
    for (const auto& phase : phases) phase.run();

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
