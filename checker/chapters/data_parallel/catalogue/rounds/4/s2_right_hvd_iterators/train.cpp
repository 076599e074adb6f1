// Step 02: Several processes find each other.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

namespace data = torch::data;
namespace du = distributed_utils;

namespace hvd {

// One world for the whole program, made by init().
std::unique_ptr<du::World> the_world;

void init(const tasks::Options& options) {
  du::SetupOptions how;
  how.backend = options.backend;
  how.device = options.device;
  the_world = std::make_unique<du::World>(du::setup(how));
  // Nobody goes on before all are there.
  du::barrier();
}

torch::Device device() { return the_world->device; }

}  // namespace hvd

// Walks over a loader by hand, as with next(iterator) in Python.
template <class Loader>
class Cursor {
 public:
  explicit Cursor(Loader& loader) : position_(loader.begin()), end_(loader.end()) {}

  tasks::Batch* next() {
    if (started_) ++position_;
    started_ = true;
    return position_ == end_ ? nullptr : &*position_;
  }

 private:
  using Iterator = decltype(std::declval<Loader&>().begin());
  Iterator position_;
  Iterator end_;
  bool started_ = false;
};

struct Trainer {
  const tasks::Task& task;
  std::shared_ptr<tasks::Model> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<tasks::Schedule> schedule;
  tasks::Progress& progress;

  tasks::Loss forward(const tasks::Batch& batch) const {
    const auto here = batch.to(hvd::device());
    return task.loss(model->forward(here.input), here.target);
  }

  tasks::Score train(auto& loader) const {
    model->train();
    auto totals = task.no_totals(hvd::device());
    Cursor cursor(loader);
    bool more = true;
    while (more) {
      const auto* batch = cursor.next();
      if (batch == nullptr) break;
      optimizer->zero_grad();
      const auto loss = forward(*batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      more = progress.step(loss);
    }
    return task.score(totals);
  }

  tasks::Score evaluate(auto& loader) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task.no_totals(hvd::device());
    Cursor cursor(loader);
    while (const auto* batch = cursor.next()) totals += forward(*batch).totals();
    return task.score(totals);
  }
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  hvd::init(options);

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

  const auto model = task->make_model();
  model->to(hvd::device());
  tasks::Progress progress(options, *train_set.size());
  Trainer trainer{*task, model, task->make_optimizer(model->parameters()), nullptr, progress};
  trainer.schedule = task->make_schedule(*trainer.optimizer, progress.total_steps());

  tasks::Score best;
  int64_t epoch = 0;
  while (epoch < options.epochs && !progress.finished()) {
    const auto trained = trainer.train(*train_loader);
    const auto valid = trainer.evaluate(*valid_loader);
    progress.report(trained, valid);
    ++epoch;
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = trainer.evaluate(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
