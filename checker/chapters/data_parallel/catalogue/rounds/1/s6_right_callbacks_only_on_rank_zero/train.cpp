// Step 06 with listeners that only rank 0 has, and that ask nothing of the other ranks.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

struct Listener {
  virtual ~Listener() = default;
  virtual void epoch_over(int64_t epoch, const tasks::Score& trained, const tasks::Score& valid,
                          bool best) = 0;
  virtual void run_over(const tasks::Score& best, const tasks::Score& test) = 0;
};

class Narrator : public Listener {
 public:
  Narrator(const tasks::Task& task, int64_t epochs) : task_(task), epochs_(epochs) {}

  void epoch_over(int64_t epoch, const tasks::Score& trained, const tasks::Score& valid,
                  bool) override {
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, epochs_,
                 task_.format(trained), task_.format(valid));
  }
  void run_over(const tasks::Score& best, const tasks::Score& test) override {
    fmt::println("best validation loss: {}", task_.describe(best));
    fmt::println("test loss: {}", task_.describe(test));
  }

 private:
  const tasks::Task& task_;
  int64_t epochs_;
};

/// save0 is no collective: rank 0 may call it alone.
class Archivist : public Listener {
 public:
  Archivist(const torch::nn::Module& model, std::filesystem::path folder)
      : model_(model), folder_(std::move(folder)) {}

  void epoch_over(int64_t, const tasks::Score&, const tasks::Score&, bool best) override {
    if (best) save0(model_, folder_ / "model-best.safetensors");
  }
  void run_over(const tasks::Score&, const tasks::Score&) override {
    save0(model_, folder_ / "model-final.safetensors");
  }

 private:
  const torch::nn::Module& model_;
  std::filesystem::path folder_;
};

/// Calls a function when it goes, whatever happened.
template <typename F>
class Finally {
 public:
  explicit Finally(F f) : f_(std::move(f)) {}
  ~Finally() { f_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  F f_;
};

class Trainer {
 public:
  using Model = DistributedDataParallel<tasks::Model>;
  Trainer(const tasks::Task& task, const tasks::Options& options, torch::Device device)
      : task_(task), options_(options), device_(device), model_(wrapped()) {}

  const torch::nn::Module& model() const { return *model_; }
  void add(std::unique_ptr<Listener> listener) { listeners_.push_back(std::move(listener)); }

  void run() {
    const auto train_set = task_.dataset("train");
    DistributedSampler sampler(*train_set.size(),
                               {.shuffle = true, .seed = options_.seed, .drop_last = true});
    const auto loader = data::make_data_loader(
        train_set, sampler, data::DataLoaderOptions(options_.batch_size).drop_last(true));
    const auto optimizer = task_.make_optimizer(model_->parameters());
    tasks::Progress progress(options_, *train_set.size());
    const auto schedule = task_.make_schedule(*optimizer, progress.total_steps());

    tasks::Score best;
    for (int64_t epoch = 0; epoch < options_.epochs && !progress.finished(); ++epoch) {
      sampler.set_epoch(epoch);
      model_->train();
      auto totals = task_.no_totals(device_);
      for (auto& batch : *loader) {
        const auto [input, target] = batch.to(device_);
        optimizer->zero_grad();
        const auto loss = task_.loss(model_->forward(input), target);
        loss.mean().backward();
        optimizer->step();
        schedule->step();
        totals += loss.totals();
        if (!progress.step(loss)) break;
      }
      const auto trained = global(totals);
      const auto valid = evaluate("validation");
      progress.report(trained, valid);
      const bool improved = valid < best;
      if (improved) best = valid;
      for (auto& listener : listeners_) listener->epoch_over(epoch, trained, valid, improved);
    }
    const auto test = evaluate("test");
    progress.report(test);
    for (auto& listener : listeners_) listener->run_over(best, test);
  }

 private:
  Model wrapped() const {
    auto module = task_.make_model();
    module->to(device_);
    return Model(module);
  }

  tasks::Score global(const torch::Tensor& totals) const {
    all_reduce(totals);
    return task_.score(totals);
  }

  tasks::Score evaluate(const char* split) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto set = task_.dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options_.batch_size));
    auto totals = task_.no_totals(device_);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device_);
      totals += task_.loss(model_->forward(input), target).totals();
    }
    return global(totals);
  }

  const tasks::Task& task_;
  const tasks::Options& options_;
  torch::Device device_;
  Model model_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const Finally leave([] { destroy_process_group(); });
  const auto task = tasks::make_task(options);
  Trainer trainer(*task, options, world.device);
  if (world.rank == 0) {
    trainer.add(std::make_unique<Narrator>(*task, options.epochs));
    trainer.add(std::make_unique<Archivist>(trainer.model(), options.output));
  }
  trainer.run();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
