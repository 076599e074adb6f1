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

// Lines are kept by everybody and said by rank 0 at the end of each epoch.
class Minutes {
 public:
  void note(std::string line) { lines_.push_back(std::move(line)); }
  void read_out() {
    for (const auto& line : lines_) print0("{}", line);
    lines_.clear();
  }

 private:
  std::vector<std::string> lines_;
};

struct Sums {
  torch::Tensor here;
  void add(const tasks::Loss& loss) { here += loss.totals(); }
  tasks::Score over_all(const tasks::Task& task) const {
    auto common = here.clone();
    all_reduce(common, ReduceOp::SUM);
    return task.score(common);
  }
};

int run(const tasks::Options& options, const World& world) {
  const auto task = tasks::make_task(options);
  const auto loaders = [&] {
    const auto batches = data::DataLoaderOptions(options.batch_size);
    const auto train = task->dataset("train");
    const auto valid = task->dataset("validation");
    const auto test = task->dataset("test");
    DistributedSampler order(*train.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
    auto training = data::make_data_loader(
        train, order, data::DataLoaderOptions(options.batch_size).drop_last(true));
    auto validation = data::make_data_loader(
        valid, DistributedSampler(*valid.size(), {.shuffle = false, .pad = false}), batches);
    auto testing = data::make_data_loader(
        test, DistributedSampler(*test.size(), {.shuffle = false, .pad = false}), batches);
    return std::tuple(order, *train.size(), std::move(training), std::move(validation), std::move(testing));
  };
  auto [order, samples, training, validation, testing] = loaders();

  const auto net = task->make_model();
  net->to(world.device);
  const auto model = DistributedDataParallel(net);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, samples);
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& loader) {
    model->eval();
    const torch::NoGradGuard no_grad;
    Sums sums{task->no_totals(world.device)};
    for (auto& batch : loader) {
      const auto at = batch.to(world.device);
      sums.add(task->loss(model->forward(at.input), at.target));
    }
    return sums.over_all(*task);
  };

  Minutes minutes;
  std::vector<tasks::Score> history;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (progress.finished()) break;
    order.set_epoch(epoch);
    model->train();
    Sums sums{task->no_totals(world.device)};
    for (auto& batch : *training) {
      const auto at = batch.to(world.device);
      // Torch's optimizer calls this back for the gradients.
      std::optional<tasks::Loss> loss;
      optimizer->step([&] {
        optimizer->zero_grad();
        loss = task->loss(model->forward(at.input), at.target);
        auto mean = loss->mean();
        mean.backward();
        return mean;
      });
      schedule->step();
      sums.add(*loss);
      if (!progress.step(*loss)) break;
    }
    const auto trained = sums.over_all(*task);
    const auto valid = evaluate(*validation);
    progress.report(trained, valid);
    minutes.note(fmt::format("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                             options.epochs, task->format(trained), task->format(valid)));
    minutes.read_out();
    const bool record = std::all_of(history.begin(), history.end(),
                                    [&](const tasks::Score& old) { return valid < old; });
    history.push_back(valid);
    if (record) save0(*model, options.output / "model-best.safetensors");
  }
  const auto test = evaluate(*testing);
  progress.report(test);
  const auto best = *std::min_element(history.begin(), history.end());
  minutes.note(fmt::format("best validation loss: {}", task->describe(best)));
  minutes.note(fmt::format("test loss: {}", task->describe(test)));
  save0(*model, options.output / "model-final.safetensors");
  minutes.read_out();
  return 0;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const int status = run(options, world);
  destroy_process_group();
  return status;
} catch (const std::exception& error) {
  return tasks::report(error);
}
