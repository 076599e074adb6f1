// Step 13. The trainer is one class. It saves and loads through two small methods.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

class Trainer {
 public:
  Trainer(const tasks::Options& options, torch::Device device)
      : options_(options),
        device_(device),
        task_(tasks::make_task(options)),
        train_set_(task_->dataset("train")),
        module_(new_module()),
        model_(module_, {.units = module_->blocks()}),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options, *train_set_.size()),
        schedule_(task_->make_schedule(*optimizer_, progress_.total_steps())) {}

  void fit() {
    if (options_.from.has_value()) pick_up(options_.from.value());
    DistributedSampler sampler(*train_set_.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    auto loader = torch::data::make_data_loader(
        train_set_, sampler, torch::data::DataLoaderOptions(options_.batch_size).drop_last(true));
    for (int64_t epoch = 0; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      const auto training = train_epoch(*loader);
      const auto validation = evaluate("validation");
      progress_.report(training, validation);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_->format(training), task_->format(validation));
      if (validation < best_) {
        best_ = validation;
        put_down();
      }
    }
  }

  void test() {
    const auto score = evaluate("test");
    progress_.report(score);
    print0("best validation loss: {}", task_->describe(best_));
    print0("test loss: {}", task_->describe(score));
    save0(*model_, options_.output / "model-final.safetensors");
  }

 private:
  using Sharded = FullyShardedDataParallel<tasks::Model>;

  std::shared_ptr<tasks::Model> new_module() const {
    auto module = task_->make_model();
    module->to(device_);
    return module;
  }

  tasks::Score train_epoch(auto& loader) {
    model_->train();
    auto totals = task_->no_totals(device_);
    for (auto& batch : loader) {
      const auto loss = progress_.take_step(batch, [this](const tasks::Batch& b) {
        const auto [x, y] = b.to(device_);
        optimizer_->zero_grad();
        auto l = task_->loss(model_->forward(x), y);
        l.mean().backward();
        optimizer_->step();
        return l;
      });
      schedule_->step();
      totals += loss.totals();
      if (!progress_.step(loss)) break;
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  tasks::Score evaluate(const std::string& split) {
    const auto set = task_->dataset(split);
    auto loader = torch::data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options_.batch_size));
    const torch::NoGradGuard guard;
    model_->eval();
    const auto whole = model_->summon_full_params();
    auto totals = task_->no_totals(device_);
    for (auto& batch : *loader) {
      const auto [x, y] = batch.to(device_);
      totals += task_->loss(model_->forward(x), y).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_->score(totals);
  }

  void pick_up(const std::filesystem::path& folder) {
    load_sharded_model(*model_, *optimizer_, folder);
    print_stderr("continues from " + folder.string());
  }

  void put_down() const {
    save_sharded_model(*model_, *optimizer_, options_.output / "model-best");
  }

  void print_stderr(const std::string& line) const {
    if (get_rank() == 0) fmt::print(stderr, "{}\n", line);
  }
  tasks::Options options_;
  torch::Device device_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset train_set_;
  std::shared_ptr<tasks::Model> module_;
  Sharded model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  std::unique_ptr<tasks::Schedule> schedule_;
  tasks::Score best_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.starts = true});
  tasks::apply(options);
  const auto where = setup({.backend = options.backend, .device = options.device});
  {
    Trainer trainer(options, where.device);
    trainer.fit();
    trainer.test();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
