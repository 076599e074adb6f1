// Step 06: the finished trainer. The ranks meet at a file, so no port has to be free.
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// Where the ranks meet. The file must not exist yet when a run starts, so its name is one that no
// earlier run has used. It is removed when we are done.
class MeetingPoint {
 public:
  explicit MeetingPoint(const fs::path& folder)
      : file_(fs::absolute(folder) / fmt::format(".meeting-{}", ::getpid())) {
    fs::remove(file_);
  }
  ~MeetingPoint() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  std::string url() const { return "file://" + file_.string(); }

 private:
  fs::path file_;
};

struct Run {
  const tasks::Options& options;
  const tasks::Task& task;
  torch::Device device;
  tasks::Progress& progress;

  // The mean over the targets of all ranks.
  tasks::Score global(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score train(auto& model, auto& loader, auto& optimizer, auto& schedule) const {
    model->train();
    auto totals = task.no_totals(device);
    bool go_on = true;
    for (auto it = loader.begin(); go_on && it != loader.end(); ++it) {
      const auto [input, target] = it->to(device);
      optimizer.zero_grad();
      const auto loss = task.loss(model->forward(input), target);
      loss.mean().backward();
      optimizer.step();
      schedule.step();
      totals += loss.totals();
      go_on = progress.step(loss);
    }
    return global(totals);
  }

  tasks::Score evaluate(auto& model, auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return global(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const MeetingPoint meeting(options.output);
  const auto [rank, local_rank, world_size, device] = setup(
      {.backend = options.backend, .device = options.device, .init_method = meeting.url()});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const data::DataLoaderOptions batches(options.batch_size);
  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Run run{options, *task, device, progress};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    train_sampler.set_epoch(epoch);
    const auto trained = run.train(model, *train_loader, *optimizer, *schedule);
    const auto valid = run.evaluate(model, *valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  }

  const auto test = run.evaluate(model, *test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
