// Step 06 with a Session that leaves by itself, and a Scribe that speaks at the end.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Collects lines and prints them when it goes, so that they do not disturb the progress bar.
class Scribe {
 public:
  Scribe() = default;
  Scribe(const Scribe&) = delete;
  Scribe& operator=(const Scribe&) = delete;
  ~Scribe() {
    for (const auto& line : lines_) print0("{}", line);
  }

  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::vector<std::string> lines_;
};

/// A member of the group of all ranks, for as long as it lives.
class Session {
 public:
  explicit Session(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() { destroy_process_group(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  torch::Device device() const { return world_.device; }

 private:
  World world_;
};

class Evaluator {
 public:
  Evaluator(const tasks::Task& task, const tasks::Options& options, torch::Device device,
            const char* split)
      : task_(task),
        device_(device),
        set_(task.dataset(split)),
        loader_(data::make_data_loader(
            set_, DistributedSampler(*set_.size(), {.shuffle = false, .pad = false}),
            data::DataLoaderOptions(options.batch_size))) {}

  tasks::Score operator()(auto& model) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader_) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  tasks::Dataset set_;
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> loader_;
};

void train_and_test(const tasks::Options& options, const Session& session, Scribe& scribe) {
  const auto device = session.device();
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  Evaluator validate(*task, options, device, "validation");
  Evaluator test(*task, options, device, "test");

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = validate(model);
    progress.report(trained, valid);
    scribe.note("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto tested = test(model);
  progress.report(tested);
  scribe.note("best validation loss: {}", task->describe(best));
  scribe.note("test loss: {}", task->describe(tested));
  save0(*model, options.output / "model-final.safetensors");
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  Scribe scribe;
  const Session session(options);
  train_and_test(options, session, scribe);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
