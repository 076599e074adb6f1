// Step 06 with a Crew that joins first and leaves last, and a Scribe that speaks when it goes.
#include <fmt/format.h>
#include <torch/torch.h>

#include <deque>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// This rank among the others, from construction to destruction.
struct Crew : World {
  explicit Crew(const tasks::Options& options)
      : World(setup({.backend = options.backend, .device = options.device})) {}
  ~Crew() { destroy_process_group(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
};

/// Holds back what was said, and says it at the end. Must go before the crew does.
class Scribe {
 public:
  explicit Scribe(const Crew& crew) : crew_(crew) {}
  ~Scribe() {
    while (!lines_.empty()) {
      fmt::println("{}", lines_.front());
      lines_.pop_front();
    }
  }
  Scribe(const Scribe&) = delete;
  Scribe& operator=(const Scribe&) = delete;

  void operator()(std::string line) {
    if (crew_.rank == 0) lines_.push_back(std::move(line));
  }

 private:
  const Crew& crew_;
  std::deque<std::string> lines_;
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, const Crew& crew)
      : options_(options),
        crew_(crew),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        sampler_(*train_set_.size(), {.shuffle = true,
                                      .seed = options.seed,
                                      .drop_last = true,
                                      .num_replicas = crew.world_size,
                                      .rank = crew.rank}),
        module_(task_->make_model()) {
    module_->to(crew.device);
    model_.emplace(module_);
    optimizer_ = task_->make_optimizer((*model_)->parameters());
    progress_.emplace(options, *train_set_.size());
    schedule_ = task_->make_schedule(*optimizer_, progress_->total_steps());
  }

  void run() {
    Scribe scribe(crew_);
    auto loader = data::make_data_loader(
        train_set_, sampler_, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_->finished(); ++epoch) {
      sampler_.set_epoch(epoch);
      const auto trained = pass(*loader, true);
      const auto valid = pass(*held_out("validation"), false);
      progress_->report(trained, valid);
      scribe(fmt::format("epoch {}/{}: training loss {}, validation loss {}", epoch + 1,
                         options_.epochs, task_->format(trained), task_->format(valid)));
      if (valid < best) {
        best = valid;
        save0(*module_, options_.output / "model-best.safetensors");
      }
    }
    const auto test = pass(*held_out("test"), false);
    progress_->report(test);
    scribe("best validation loss: " + task_->describe(best));
    scribe("test loss: " + task_->describe(test));
    save0(*module_, options_.output / "model-final.safetensors");
  }

 private:
  std::unique_ptr<data::StatelessDataLoader<tasks::Dataset, DistributedSampler>> held_out(
      const char* split) const {
    const auto set = task_->dataset(split);
    return data::make_data_loader(set,
                                  DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
                                  data::DataLoaderOptions(options_.batch_size));
  }

  tasks::Score pass(auto& loader, bool trains) {
    auto& model = *model_;
    const torch::AutoGradMode gradients(trains);
    model->train(trains);
    auto totals = task_->no_totals(crew_.device);
    for (auto& batch : loader) {
      const auto [input, target] = batch.to(crew_.device);
      if (trains) optimizer_->zero_grad();
      const auto loss = task_->loss(model->forward(input), target);
      totals += loss.totals();
      if (!trains) continue;
      loss.mean().backward();
      optimizer_->step();
      schedule_->step();
      if (!progress_->step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  const tasks::Options& options_;
  const Crew& crew_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  DistributedSampler sampler_;
  std::shared_ptr<tasks::Model> module_;
  std::optional<DistributedDataParallel<tasks::Model>> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<tasks::Progress> progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const Crew crew(options);
  Trainer trainer(options, crew);
  trainer.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
