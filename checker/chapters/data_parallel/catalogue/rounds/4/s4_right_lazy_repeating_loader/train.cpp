// Step 04: The ranks train one model.
#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// An endless stream of batches. It begins a new pass when somebody asks for a batch after the
// last one, and not earlier.
template <class Loader>
class RepeatingLoader {
 public:
  explicit RepeatingLoader(Loader& loader) : loader_(loader) {}

  const tasks::Batch& operator()() {
    if (position_) ++*position_;
    if (!position_ || *position_ == loader_.end()) position_.emplace(loader_.begin());
    return **position_;
  }

 private:
  using Iterator = decltype(std::declval<Loader&>().begin());
  Loader& loader_;
  std::optional<Iterator> position_;
};

// Keras-like callbacks, in the order in which they were added.
struct Callbacks {
  std::vector<std::function<void(int64_t)>> on_epoch_begin;
  std::vector<std::function<void(int64_t, const tasks::Score&)>> on_epoch_end;

  void begin(int64_t epoch) const {
    for (const auto& callback : on_epoch_begin) callback(epoch);
  }
  void end(int64_t epoch, const tasks::Score& score) const {
    for (const auto& callback : on_epoch_end) callback(epoch, score);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto in_order = [](const tasks::Dataset& set) {
    return DistributedSampler(*set.size(), {.shuffle = false, .pad = false});
  };

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, in_order(valid_set), batches);
  auto test_loader = data::make_data_loader(test_set, in_order(test_set), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    for (auto& batch : loader) totals += loss_of(batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  Callbacks callbacks;
  callbacks.on_epoch_begin.emplace_back(
      [&](int64_t epoch) { train_sampler.set_epoch(static_cast<uint64_t>(epoch)); });
  callbacks.on_epoch_begin.emplace_back([&](int64_t) { model->train(); });
  callbacks.on_epoch_end.emplace_back([&](int64_t epoch, const tasks::Score& trained) {
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  });

  RepeatingLoader next_batch(*train_loader);
  const auto steps = static_cast<int64_t>(train_sampler.size()) / options.batch_size;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    callbacks.begin(epoch);
    auto totals = task->no_totals(device);
    for (int64_t i = 0; i < steps; ++i) {
      const auto& batch = next_batch();
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    callbacks.end(epoch, task->score(totals));
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
