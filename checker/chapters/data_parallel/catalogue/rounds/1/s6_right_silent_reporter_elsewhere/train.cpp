// Step 06 with an office on rank 0 and an empty one on all other ranks.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdio>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Where lines and models go. This one throws them away.
class Office {
 public:
  virtual ~Office() = default;
  virtual void say(const std::string& /*line*/) {}
  virtual void store(const torch::nn::Module& /*model*/, const std::string& /*name*/) {}

  static std::unique_ptr<Office> open(const World& world, const std::filesystem::path& folder);
};

/// To stdout, and into files that are complete or not there.
class HeadOffice : public Office {
 public:
  explicit HeadOffice(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void say(const std::string& line) override {
    fmt::println("{}", line);
    std::fflush(stdout);
  }
  void store(const torch::nn::Module& model, const std::string& name) override {
    save_file(state_dict(model), folder_ / (name + ".safetensors"));
  }

 private:
  std::filesystem::path folder_;
};

std::unique_ptr<Office> Office::open(const World& world, const std::filesystem::path& folder) {
  if (world.rank == 0) return std::make_unique<HeadOffice>(folder);
  return std::make_unique<Office>();
}

/// A split that is evaluated, dealt out to all ranks.
class HeldOut {
 public:
  HeldOut(const tasks::Task& task, const char* split, int64_t batch_size)
      : task_(task),
        loader_(make(task.dataset(split), batch_size)) {}

  tasks::Score score(auto& model, torch::Device device) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device);
    for (auto& batch : *loader_) {
      const auto [input, target] = batch.to(device);
      totals += task_.loss(model->forward(input), target).totals();
    }
    all_reduce(totals);
    return task_.score(totals);
  }

 private:
  using Loader = data::StatelessDataLoader<tasks::Dataset, DistributedSampler>;
  static std::unique_ptr<Loader> make(const tasks::Dataset& set, int64_t batch_size) {
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(batch_size));
  }

  const tasks::Task& task_;
  std::unique_ptr<Loader> loader_;
};

/// The whole run; when it returns, nothing is left to be said or written.
void run(const tasks::Options& options, const World& world) {
  const auto task = tasks::make_task(options);
  const auto office = Office::open(world, options.output);
  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  HeldOut validation(*task, "validation", options.batch_size);
  HeldOut test(*task, "test", options.batch_size);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(world.device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(world.device);
      model->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals);
    const auto trained = task->score(totals);
    const auto valid = validation.score(model, world.device);
    progress.report(trained, valid);
    office->say(fmt::format("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                            options.epochs, task->format(trained), task->format(valid)));
    if (valid < best) {
      best = valid;
      office->store(*model, "model-best");
    }
  }
  const auto tested = test.score(model, world.device);
  progress.report(tested);
  office->say("best validation loss: " + task->describe(best));
  office->say("test loss: " + task->describe(tested));
  office->store(*model, "model-final");
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  run(options, setup({.backend = options.backend, .device = options.device}));
  barrier();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
