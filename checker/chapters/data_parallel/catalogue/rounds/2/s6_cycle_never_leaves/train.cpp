// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>
#include <memory>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Membership in the group of all ranks. Whoever needs the group holds the session; when nobody does
// any more, it runs what was left for the end and leaves.
class Session {
 public:
  explicit Session(const tasks::Options& options)
      : world_(setup({.backend = options.backend, .device = options.device})) {}
  ~Session() {
    for (const auto& last_thing : last_things_) last_thing();
    destroy_process_group();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void before_leaving(std::function<void()> last_thing) {
    last_things_.push_back(std::move(last_thing));
  }
  torch::Device device() const { return world_.device; }

 private:
  World world_;
  std::vector<std::function<void()>> last_things_;
};

// Holds the model and everything that changes it.
class Trainer : public std::enable_shared_from_this<Trainer> {
 public:
  Trainer(std::shared_ptr<Session> session, std::shared_ptr<tasks::Task> task, size_t samples,
          const tasks::Options& options)
      : session_(std::move(session)),
        task_(std::move(task)),
        model_(placed(task_->make_model(), session_->device())),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, samples),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  // No gradient may be under way when the connections close.
  void tidy_up_at_the_end() {
    session_->before_leaving([self = shared_from_this()] { self->model_->zero_grad(); });
  }

  tasks::Score train(auto& loader) {
    model_->train();
    auto totals = task_->no_totals(session_->device());
    for (auto& batch : loader) {
      optimizer_->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score evaluate(auto& loader) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    auto totals = task_->no_totals(session_->device());
    for (auto& batch : loader) totals += loss_of(batch).totals();
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  void save(const std::filesystem::path& path) const { save0(*model_, path); }
  tasks::Progress& progress() { return progress_; }

 private:
  static std::shared_ptr<tasks::Model> placed(std::shared_ptr<tasks::Model> model,
                                              torch::Device device) {
    model->to(device);
    return model;
  }

  tasks::Loss loss_of(const tasks::Batch& batch) {
    const auto [input, target] = batch.to(session_->device());
    return task_->loss(model_->forward(input), target);
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<tasks::Task> task_;
  DistributedDataParallel<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto session = std::make_shared<Session>(options);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  const auto loader_of = [&](std::string_view split) {
    const auto set = task->dataset(split);
    const DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    return data::make_data_loader(set, sampler, data::DataLoaderOptions(options.batch_size));
  };
  auto valid_loader = loader_of("validation");
  auto test_loader = loader_of("test");

  const auto trainer = std::make_shared<Trainer>(session, task, *train_set.size(), options);
  trainer->tidy_up_at_the_end();

  auto& progress = trainer->progress();
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = trainer->train(*train_loader);
    const auto valid = trainer->evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      trainer->save(options.output / "model-best.safetensors");
    }
  }

  const auto test = trainer->evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  trainer->save(options.output / "model-final.safetensors");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
