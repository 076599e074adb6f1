// Step 06: One rank speaks, one rank writes.
// Trainer with a ModelCheckpoint that stores a state_dict, made as in Python from
// named_parameters() and named_buffers().

#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// {name: tensor} of everything that training changes.
StateDict collect_state(const torch::nn::Module& model) {
  StateDict state;
  for (const auto& item : model.named_parameters()) state[item.key()] = item.value().detach();
  for (const auto& item : model.named_buffers()) state[item.key()] = item.value().detach();
  return state;
}

class ModelCheckpoint {
 public:
  explicit ModelCheckpoint(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // save_top_k=1, mode="min"
  void on_validation_end(const torch::nn::Module& model, const tasks::Score& score) {
    if (score < best_) {
      best_ = score;
      write(model, "model-best.safetensors");
    }
  }
  // save_last=True
  void on_train_end(const torch::nn::Module& model) { write(model, "model-final.safetensors"); }

  const tasks::Score& best() const { return best_; }

 private:
  // All ranks hold the same weights, so rank 0's are enough. save_file renames when it is done.
  void write(const torch::nn::Module& model, const char* name) const {
    if (get_rank() != 0) return;
    save_file(collect_state(model), folder_ / name);
  }

  std::filesystem::path folder_;
  tasks::Score best_;
};

// One pass over a loader; `step` makes a loss of a batch and says whether to go on.
tasks::Score epoch_loop(const tasks::Task& task, auto& loader, torch::Device device, auto step) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [loss, proceed] = step(batch.to(device));
    totals += loss.totals();
    if (!proceed) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

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
  ModelCheckpoint checkpoint(options.output);

  using Step = std::pair<tasks::Loss, bool>;
  const auto training_step = [&](const tasks::Batch& batch) -> Step {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return {loss, progress.step(loss)};
  };
  const auto validation_step = [&](const tasks::Batch& batch) -> Step {
    return {task->loss(model->forward(batch.input), batch.target), true};
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return epoch_loop(*task, loader, device, validation_step);
  };

  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const auto trained = epoch_loop(*task, *train_loader, device, training_step);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    checkpoint.on_validation_end(*model, valid);
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(checkpoint.best()));
  print0("test loss: {}", task->describe(test));
  checkpoint.on_train_end(*model);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
