// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

enum class Mode { learn, measure };

// What one rank of the world does beside computing, and the others do not.
struct Host {
  std::filesystem::path folder;

  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    fmt::println(format, std::forward<Args>(args)...);
  }
  void keep(std::string_view name, const torch::nn::Module& model) const {
    save_file(state_dict(model), folder / fmt::format("{}.safetensors", name));
  }
};

// Learns from a loader's batches, or measures how well the model does on them.
template <Mode mode>
tasks::Score over(const tasks::Task& task, auto& model, auto& loader, torch::Device device,
                  auto... after_batch) {
  const torch::AutoGradMode gradients(mode == Mode::learn);
  model->train(mode == Mode::learn);
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto loss = task.loss(model->forward(input), target);
    totals += loss.totals();
    if (!(after_batch(loss) && ...)) break;
  }
  // Averages of sums and of counts have the quotient that their sums have.
  all_reduce(totals, ReduceOp::AVG);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  std::optional<Host> host;
  if (world.rank == 0) host = Host{options.output};

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto loader_of = [&](std::string_view split) {
    const auto set = task->dataset(split);
    return data::make_data_loader(
        set,
        DistributedSampler(*set.size(), {.shuffle = false,
                                         .pad = false,
                                         .num_replicas = world.world_size,
                                         .rank = world.rank}),
        data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = loader_of("validation");
  auto test_loader = loader_of("test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto descend = [&](const tasks::Loss& loss) {
    loss.mean().backward();
    optimizer->step();
    optimizer->zero_grad();  // for the next batch
    schedule->step();
    return progress.step(loss);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = over<Mode::learn>(*task, model, *train_loader, device, descend);
    const auto valid = over<Mode::measure>(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    if (host) {
      host->say("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                task->format(trained), task->format(valid));
    }
    if (valid < best) {
      best = valid;
      if (host) host->keep("model-best", *model);
    }
  }

  const auto test = over<Mode::measure>(*task, model, *test_loader, device);
  progress.report(test);
  if (host) {
    host->say("best validation loss: {}", task->describe(best));
    host->say("test loss: {}", task->describe(test));
    host->keep("model-final", *model);
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
