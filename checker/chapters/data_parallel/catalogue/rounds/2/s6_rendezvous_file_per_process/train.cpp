// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// Joins the ranks when it is made and leaves them when it goes. The ranks meet at a file below the
// output folder, which needs no free port.
class Session {
 public:
  explicit Session(const tasks::Options& options)
      : meeting_point_(new_meeting_point(options.output)),
        world_(setup({.backend = options.backend,
                      .device = options.device,
                      .init_method = "file://" + meeting_point_.string()})) {}
  ~Session() { destroy_process_group(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  torch::Device device() const { return world_.device; }

 private:
  // The file must not exist yet, so its name is one that no earlier run can have used.
  static fs::path new_meeting_point(const fs::path& folder) {
    return fs::absolute(folder) / fmt::format(".rendezvous-{}", ::getpid());
  }

  fs::path meeting_point_;
  World world_;
};

// Everything that a pass over data needs.
template <typename Model>
struct Passes {
  const tasks::Task& task;
  Model& model;
  torch::Device device;

  tasks::Score everybodys(const torch::Tensor& totals) const {
    all_reduce(totals, ReduceOp::SUM);
    return task.score(totals);
  }

  tasks::Score train(auto& loader, auto& optimizer, tasks::Schedule& schedule,
                     tasks::Progress& progress) const {
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
    return everybodys(totals);
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task.loss(model->forward(input), target).totals();
    }
    return everybodys(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Session session(options);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const DistributedSamplerOptions exact{.shuffle = false, .pad = false};

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader =
      data::make_data_loader(valid_set, DistributedSampler(*valid_set.size(), exact), batches);
  auto test_loader =
      data::make_data_loader(test_set, DistributedSampler(*test_set.size(), exact), batches);

  const auto module = task->make_model();
  module->to(session.device());
  auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const Passes<decltype(model)> passes{*task, model, session.device()};

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = passes.train(*train_loader, *optimizer, *schedule, progress);
    const auto valid = passes.evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = passes.evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
