#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "tasks/checkpointing.hpp"
#include "tasks/prepared.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// A lock on a file, given back when it goes out of scope.
class FileLock {
 public:
  FileLock(const fs::path& path, int kind) : file_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file_ < 0 || ::flock(file_, kind) != 0)
      throw std::runtime_error(fmt::format("cannot lock {}", path.string()));
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

// The first rank of each node has its node's lock before any other rank asks for it. The others
// get it, together, once it has made its task.
std::shared_ptr<tasks::Task> make_task_under_lock(const tasks::Options& options,
                                                  const World& world) {
  const auto folder = tasks::cache_folder();
  fs::create_directories(folder);
  const auto path = folder / fmt::format("node-of-rank-{}.lock", world.rank - world.local_rank);
  if (world.local_rank == 0) {
    const FileLock lock(path, LOCK_EX);
    barrier();
    return tasks::make_task(options);
  }
  barrier();
  const FileLock lock(path, LOCK_SH);
  return tasks::make_task(options);
}

// Rank 0 sends its buffers to one rank after the other.
void hand_out_buffers(const torch::nn::Module& module, const World& world) {
  for (const auto& buffer : module.buffers()) {
    if (world.rank != 0) {
      recv(buffer, 0);
      continue;
    }
    for (int rank = 1; rank < world.world_size; ++rank) send(buffer, rank);
  }
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
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
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  const auto task = make_task_under_lock(options, world);

  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");
  DistributedSampler sampler(*train_set.size(), {.seed = options.seed, .drop_last = true});
  const DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  const DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(world.device);
  tasks::Checkpointing checkpoints(options);
  const auto model =
      DistributedDataParallel(module, {.bucket_indices = checkpoints.bucket_indices()});
  const auto optimizer = task->make_optimizer(
      model->parameters(), {.learning_rate_factor = std::sqrt(double(world.world_size))});
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  auto epoch = checkpoints.restore(*model, *optimizer, *schedule, sampler, progress, best);
  for (; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = checkpoints.begin_epoch(task->no_totals(world.device));
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(world.device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      // A rank weighs 1 where it has as many targets as the mean of the ranks.
      auto mean =
          torch::full({}, double(loss.count), torch::dtype(torch::kDouble).device(world.device));
      all_reduce(mean, ReduceOp::AVG);
      const double weight = double(loss.count) / mean.item<double>();
      (weight * loss.mean()).backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
      checkpoints.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    hand_out_buffers(*module, world);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
