// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// DeepSpeed's RepeatingLoader: never ends, begins again where the loader ends.
template <class Loader>
class RepeatingLoader {
 public:
  explicit RepeatingLoader(Loader& loader) : loader_(loader) {}

  const tasks::Batch& next() {
    if (position_) {
      ++*position_;
    } else {
      position_.emplace(loader_.begin());
    }
    if (*position_ == loader_.end()) position_.emplace(loader_.begin());
    return **position_;
  }

 private:
  using Iterator = decltype(std::declval<Loader&>().begin());
  Loader& loader_;
  std::optional<Iterator> position_;
};

// Python's iter(loader): nullptr at the end.
template <class Loader>
class Iter {
 public:
  explicit Iter(Loader& loader) : position_(loader.begin()), end_(loader.end()) {}

  const tasks::Batch* next() {
    if (!first_ && position_ != end_) ++position_;
    first_ = false;
    return position_ == end_ ? nullptr : &*position_;
  }

 private:
  using Iterator = decltype(std::declval<Loader&>().begin());
  Iterator position_, end_;
  bool first_ = true;
};

// The engine owns the model and all that steps it.
class Engine {
 public:
  Engine(const tasks::Task& task, torch::Device device, tasks::Progress& progress)
      : task_(task),
        device_(device),
        progress_(progress),
        model_(task.make_model()) {
    model_->to(device);
    optimizer_ = task.make_optimizer(model_->parameters());
    schedule_ = task.make_schedule(*optimizer_, progress.total_steps());
  }

  // One epoch is that many calls of train_batch().
  tasks::Score train(auto& batches, int64_t count) {
    model_->train();
    auto totals = task_.no_totals(device_);
    for (int64_t i = 0; i < count; ++i) {
      const auto loss = train_batch(batches.next());
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    return task_.score(totals);
  }

  tasks::Score eval(auto& batches) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_.no_totals(device_);
    while (const auto* batch = batches.next()) totals += forward(*batch).totals();
    return task_.score(totals);
  }

  void save(const std::filesystem::path& path) const { torch::save(model_, path); }

 private:
  tasks::Loss forward(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device_);
    return task_.loss(model_->forward(input), target);
  }
  tasks::Loss train_batch(const tasks::Batch& batch) {
    optimizer_->zero_grad();
    auto loss = forward(batch);
    loss.mean().backward();
    optimizer_->step();
    schedule_->step();
    return loss;
  }

  const tasks::Task& task_;
  torch::Device device_;
  tasks::Progress& progress_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

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

  RepeatingLoader train_iter(*train_loader);
  Iter valid_iter(*valid_loader);
  Iter test_iter(*test_loader);
  const auto steps = static_cast<int64_t>(train_sampler.size()) / options.batch_size;

  tasks::Progress progress(options, *train_set.size());
  Engine engine(*task, device, progress);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = engine.train(train_iter, steps);
    const auto valid = engine.eval(valid_iter);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      engine.save(options.output / "model-best.pt");
    }
  }

  const auto test = engine.eval(test_iter);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  engine.save(options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
