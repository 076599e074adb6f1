// Step 06: the finished trainer. At the end every rank looks at the files that rank 0 wrote.
#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// True if the file holds this model's tensors, by name and value.
bool holds(const fs::path& path, const torch::nn::Module& model) {
  const auto expected = state_dict(model);
  const auto stored = load_file(path);
  if (stored.size() != expected.size()) return false;
  for (const auto& [name, tensor] : expected) {
    const auto found = stored.find(name);
    if (found == stored.end()) return false;
    if (found->second.sizes() != tensor.sizes()) return false;
    if (!torch::allclose(found->second, tensor.detach().cpu())) return false;
  }
  return true;
}

// A pass over a loader: the sum over all ranks, as a score. `use` takes a batch and says whether to
// go on.
tasks::Score pass(const tasks::Task& task, auto& loader, torch::Device device, auto use) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader)
    if (!use(batch.to(device), totals)) break;
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World me = setup({.backend = options.backend, .device = options.device});
  const torch::Device device = me.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    return pass(*task, *train_loader, device, [&](const tasks::Batch& batch, torch::Tensor& sum) {
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      sum += loss.totals();
      return progress.step(loss);
    });
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return pass(*task, loader, device, [&](const tasks::Batch& batch, torch::Tensor& sum) {
      sum += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (!(valid < best)) continue;
    best = valid;
    save0(*model, options.output / "model-best.safetensors");
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));

  const auto file = options.output / "model-final.safetensors";
  save0(*model, file);
  barrier();  // save0 does not wait for rank 0
  if (!holds(file, *model))
    fmt::print(stderr, "warning: rank {} holds another model than the file\n", me.rank);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
