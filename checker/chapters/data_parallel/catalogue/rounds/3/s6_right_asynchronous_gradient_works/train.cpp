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

// What DistributedDataParallel does, in small: equal weights at the start, equal gradients after.
struct Replica {
  std::shared_ptr<tasks::Model> net;

  Replica(std::shared_ptr<tasks::Model> model, torch::Device device) : net(std::move(model)) {
    net->to(device);
    const torch::NoGradGuard no_grad;
    std::vector<Work> works;
    for (auto& parameter : net->parameters()) works.push_back(broadcast_async(parameter, 0));
    for (auto& work : works) work.wait();
  }

  // Before a training forward all have rank 0's buffers.
  void share_buffers() {
    for (auto& buffer : net->buffers()) broadcast(buffer, 0);
  }

  void backward(const tasks::Loss& loss) {
    loss.mean().backward();
    std::vector<torch::Tensor> gradients;
    std::vector<Work> works;
    for (auto& parameter : net->parameters())
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    for (auto& gradient : gradients) works.push_back(all_reduce_async(gradient, ReduceOp::SUM));
    for (size_t i = 0; i < works.size(); ++i) {
      works[i].wait();
      gradients[i].div_(get_world_size());
    }
  }
};

struct Story {
  const tasks::Options& options;
  const tasks::Task& task;
  tasks::Progress& progress;
  const Replica& replica;
  tasks::Score best{};

  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (get_rank() == 0) fmt::println("{}", fmt::format(format, std::forward<Args>(args)...));
  }
  void chapter(int64_t number, const tasks::Score& trained, const tasks::Score& valid) {
    progress.report(trained, valid);
    say("epoch {}/{}: training loss {}, validation loss {}", number, options.epochs,
        task.format(trained), task.format(valid));
    if (valid < best) {
      best = valid;
      save0(*replica.net, options.output / "model-best.safetensors");
    }
  }
  void end(const tasks::Score& test) const {
    progress.report(test);
    say("best validation loss: {}", task.describe(best));
    say("test loss: {}", task.describe(test));
    save0(*replica.net, options.output / "model-final.safetensors");
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  {
    const auto task = tasks::make_task(options);
    std::map<std::string, tasks::Dataset> sets;
    for (const char* name : {"train", "validation", "test"}) sets.emplace(name, task->dataset(name));
    std::map<std::string, DistributedSampler> samplers;
    for (const auto& [name, set] : sets)
      samplers.emplace(name, name == "train"
                                 ? DistributedSampler(*set.size(), {.shuffle = true,
                                                                    .seed = options.seed,
                                                                    .drop_last = true})
                                 : DistributedSampler(*set.size(), {.shuffle = false, .pad = false}));
    Replica replica(task->make_model(), device);
    const auto optimizer = task->make_optimizer(replica.net->parameters());
    tasks::Progress progress(options, *sets.at("train").size());
    const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
    Story story{options, *task, progress, replica};

    // One pass over a split, with steps for "train".
    const auto pass = [&, here = device](const std::string& name) {
      const bool learns = name == "train";
      const torch::AutoGradMode mode(learns);
      replica.net->train(learns);
      auto loader = data::make_data_loader(
          sets.at(name), samplers.at(name),
          data::DataLoaderOptions(options.batch_size).drop_last(learns));
      auto totals = task->no_totals(here);
      for (auto& batch : *loader) {
        const auto [input, target] = batch.to(here);
        if (learns) replica.share_buffers();
        const auto loss = task->loss(replica.net->forward(input), target);
        totals += loss.totals();
        if (!learns) continue;
        optimizer->zero_grad();
        replica.backward(loss);
        optimizer->step();
        schedule->step();
        if (!progress.step(loss)) break;
      }
      all_reduce(totals, ReduceOp::SUM);
      return task->score(totals);
    };
    for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
      samplers.at("train").set_epoch(epoch);
      const auto trained = pass("train");
      const auto valid = pass("validation");
      story.chapter(epoch + 1, trained, valid);
    }
    story.end(pass("test"));
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
