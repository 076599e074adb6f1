#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Who may do what in this run.
struct Roles {
  World world;
  bool speaks() const { return world.local_rank == 0; }
};

// Says what a run comes to, and keeps its models.
class Herald {
 public:
  Herald(const tasks::Options& options, const tasks::Task& task, const Roles& roles)
      : options_(options), task_(task), roles_(roles) {}

  template <class M>
  void epoch(int64_t number, const tasks::Score& trained, const tasks::Score& valid, const M& model) {
    say(fmt::format("epoch {}/{}: training loss {}, validation loss {}", number, options_.epochs,
                    task_.format(trained), task_.format(valid)));
    if (!(valid < best_)) return;
    best_ = valid;
    save0(*model, options_.output / "model-best.safetensors");
  }
  template <class M>
  void finish(const tasks::Score& test, const M& model) const {
    say(fmt::format("best validation loss: {}", task_.describe(best_)));
    say(fmt::format("test loss: {}", task_.describe(test)));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  void say(const std::string& line) const {
    if (roles_.speaks()) fmt::println("{}", line);
  }
  const tasks::Options& options_;
  const tasks::Task& task_;
  Roles roles_;
  tasks::Score best_;
};

tasks::Score pass(const tasks::Task& task, auto& loader, torch::Device device, auto visit) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader)
    if (!visit(batch.to(device), totals)) break;
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Roles roles{setup({.backend = options.backend, .device = options.device})};
  const auto device = roles.world.device;
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler order(*train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const auto evaluate = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    const auto set = task->dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    model->eval();
    return pass(*task, *loader, device, [&](const tasks::Batch& batch, torch::Tensor& totals) {
      totals += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
  };
  Herald herald(options, *task, roles);
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    order.set_epoch(epoch);
    model->train();
    const auto trained =
        pass(*task, *train_loader, device, [&](const tasks::Batch& batch, torch::Tensor& totals) {
          optimizer->zero_grad();
          const auto loss = task->loss(model->forward(batch.input), batch.target);
          loss.mean().backward();
          optimizer->step();
          schedule->step();
          totals += loss.totals();
          return progress.step(loss);
        });
    const auto valid = evaluate("validation");
    progress.report(trained, valid);
    herald.epoch(epoch + 1, trained, valid, model);
  }
  const auto test = evaluate("test");
  progress.report(test);
  herald.finish(test, model);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
