// Step 06 with a Checkpointer as callback.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_better(const torch::nn::Module& model) = 0;
  virtual void on_end(const torch::nn::Module& model) = 0;
};

class Checkpointer : public Callback {
 public:
  explicit Checkpointer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void on_better(const torch::nn::Module& model) override {
    write(model, "model-best.safetensors");
  }
  void on_end(const torch::nn::Module& model) override { write(model, "model-final.safetensors"); }

 private:
  /// Nobody trains on before the file is complete.
  void write(const torch::nn::Module& model, const char* name) const {
    save0(model, folder_ / name);
    barrier();
  }

  std::filesystem::path folder_;
};

struct Splits {
  tasks::Dataset train, validation, test;
  explicit Splits(const tasks::Task& task)
      : train(task.dataset("train")),
        validation(task.dataset("validation")),
        test(task.dataset("test")) {}
};

class Trainer {
 public:
  Trainer(const tasks::Options& options, const tasks::Task& task, const World& world)
      : options_(options), task_(task), device_(world.device), splits_(task) {}

  void add(std::unique_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }

  void run() {
    const auto module = task_.make_model();
    module->to(device_);
    const auto model = DistributedDataParallel(module);
    const auto optimizer = task_.make_optimizer(model->parameters());
    tasks::Progress progress(options_, *splits_.train.size());
    const auto schedule = task_.make_schedule(*optimizer, progress.total_steps());

    DistributedSampler sampler(*splits_.train.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    const auto train_loader = data::make_data_loader(
        splits_.train, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));

    const auto step = [&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      auto loss = task_.loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      return loss;
    };

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model->train();
      auto totals = task_.no_totals(device_);
      for (auto& batch : *train_loader) {
        const auto loss = step(batch.to(device_));
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      all_reduce(totals, ReduceOp::SUM);
      const auto trained = task_.score(totals);
      const auto valid = evaluate(model, splits_.validation);
      progress.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             task_.format(trained), task_.format(valid));
      if (valid < best) {
        best = valid;
        for (auto& callback : callbacks_) callback->on_better(*model);
      }
    }
    const auto test = evaluate(model, splits_.test);
    progress.report(test);
    print0("best validation loss: {}", task_.describe(best));
    print0("test loss: {}", task_.describe(test));
    for (auto& callback : callbacks_) callback->on_end(*model);
  }

 private:
  tasks::Score evaluate(auto& model, const tasks::Dataset& set) const {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto here = batch.to(device_);
      totals += task_.loss(model->forward(here.input), here.target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return task_.score(totals);
  }

  const tasks::Options& options_;
  const tasks::Task& task_;
  torch::Device device_;
  Splits splits_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  Trainer trainer(options, *task, world);
  // Files are rank 0's.
  if (world.rank == 0) trainer.add(std::make_unique<Checkpointer>(options.output));
  trainer.run();
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
