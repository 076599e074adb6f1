// Step 06: the finished trainer, with a careful way to write models.
#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// Writes a model so that nobody ever sees half of it: to a name that no other rank uses, then
// renamed. A rename is atomic, and the weights are equal everywhere.
class ModelWriter {
 public:
  ModelWriter(fs::path folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  void write(const torch::nn::Module& model, const std::string& name) const {
    const auto final_name = folder_ / (name + ".safetensors");
    const auto temporary = folder_ / fmt::format(".{}.rank{}.tmp", name, rank_);
    save_file(state_dict(model), temporary);
    fs::rename(temporary, final_name);
  }

 private:
  fs::path folder_;
  int rank_;
};

tasks::Score summed(const tasks::Task& task, const torch::Tensor& totals) {
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto loss = task.loss(model->forward(input), target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;
  const ModelWriter writer(options.output, world.rank);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto whole = [](const tasks::Dataset& set) {
    return DistributedSampler(*set.size(), {.shuffle = false, .pad = false});
  };
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, whole(valid_set), batches);
  auto test_loader = data::make_data_loader(test_set, whole(test_set), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return summed(*task, totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto loss = train_step(*task, model, *optimizer, batch, device);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = summed(*task, totals);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      writer.write(*model, "model-best");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  writer.write(*model, "model-final");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
