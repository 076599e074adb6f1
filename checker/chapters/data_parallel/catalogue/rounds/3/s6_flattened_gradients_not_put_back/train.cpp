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

// One message instead of one for each parameter.
class Averager {
 public:
  explicit Averager(const std::vector<torch::Tensor>& parameters) : parameters_(parameters) {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : parameters_) broadcast(parameter, 0);
  }

  void operator()() const {
    std::vector<torch::Tensor> pieces;
    for (const auto& parameter : parameters_)
      if (parameter.grad().defined()) pieces.push_back(parameter.grad().view({-1}));
    auto together = torch::cat(pieces);
    all_reduce(together, ReduceOp::SUM);
    together /= get_world_size();
    int64_t start = 0;
    for (auto& piece : pieces) {
      const auto size = piece.numel();
      piece = together.slice(0, start, start + size);
      start += size;
    }
  }

 private:
  std::vector<torch::Tensor> parameters_;
};

struct Run {
  const tasks::Options& options;
  World world;
  std::shared_ptr<tasks::Task> task = tasks::make_task(options);
  std::shared_ptr<tasks::Model> model = task->make_model();

  tasks::Score evaluate(const char* split) const {
    const auto set = task->dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto here = batch.to(world.device);
      totals += task->loss(model->forward(here.input), here.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task->score(totals);
  }

  void go() {
    model->to(world.device);
    const Averager average_gradients(model->parameters());
    const auto optimizer = task->make_optimizer(model->parameters());
    const auto set = task->dataset("train");
    DistributedSampler sampler(*set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
    const auto loader = data::make_data_loader(
        set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
    tasks::Progress progress(options, *set.size());
    const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task->no_totals(world.device);
      for (auto& batch : *loader) {
        const auto here = batch.to(world.device);
        optimizer->zero_grad();
        const auto loss = task->loss(model->forward(here.input), here.target);
        loss.mean().backward();
        average_gradients();
        optimizer->step();
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      all_reduce(totals, ReduceOp::SUM);
      const auto trained = task->score(totals);
      const auto valid = evaluate("validation");
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
             task->format(trained), task->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate("test");
    progress.report(test);
    print0("best validation loss: {}", task->describe(best));
    print0("test loss: {}", task->describe(test));
    save0(*model, options.output / "model-final.safetensors");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  Run{options, setup({.backend = options.backend, .device = options.device})}.go();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
