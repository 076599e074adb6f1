#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

#include <cstdlib>

// Returns the score over a whole split.
tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    const auto output = model->forward(input);
    totals += task.loss(output, target).totals();
  }
  return task.score(totals);
}

// What a launcher would set, where none did.
World join(std::string backend, std::optional<torch::Device> device) {
  setenv("SETUP_TIMEOUT", "60", 0);
  SetupOptions wishes;
  wishes.backend = std::move(backend);
  if (device) wishes.device = device;
  World world = setup(wishes);
  if (world.rank != get_rank() || world.world_size != get_world_size()) {
    throw tasks::Error("setup() and the process group disagree about who this is");
  }
  return world;
}

// The batches of endless epochs, one after the other.
template <typename Loader>
class Stream {
 public:
  explicit Stream(Loader& loader) : loader_(loader), here_(loader.end()) {}
  void rewind() { here_ = loader_.begin(); }
  bool done() { return here_ == loader_.end(); }
  tasks::Batch take() {
    tasks::Batch batch = *here_;
    ++here_;
    return batch;
  }

 private:
  Loader& loader_;
  decltype(std::declval<Loader&>().begin()) here_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = join(options.backend, options.device);
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  Stream stream(*train_loader);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    stream.rewind();
    model->train();
    auto totals = task->no_totals(device);
    for (bool more = true; more && !stream.done();) {
      const auto batch = stream.take().to(device);
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      model->zero_grad();
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      more = progress.step(loss);
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
