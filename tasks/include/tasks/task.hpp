#pragma once
/// A task is a workload as a black box: data, model, loss, optimizer. Trainers know tasks by this
/// page only, never by name. What a task is made to do passes through the non-virtual functions
/// here, where it can be recorded for the checker (see instrumentation/recording.hpp); a task
/// implements the private virtual ones.
#include <torch/data/datasets/base.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed_utils/block.hpp"
#include "tasks/batch.hpp"
#include "tasks/options.hpp"
#include "tasks/schedule.hpp"
#include "tasks/score.hpp"

namespace tasks {

/// A split by its place in Task::splits(); a task may have more.
enum class Split : uint64_t { train, validation, test };

/// The samples of one split. Cheap to copy: copies share their data.
class Dataset : public torch::data::datasets::BatchDataset<Dataset, Batch> {
 public:
  /// What a task implements. Thread-safe: loaders with workers fetch concurrently.
  struct Source {
    virtual ~Source() = default;
    /// The samples of these indices, in their order; each index is less than size().
    virtual Batch fetch(c10::ArrayRef<size_t> indices) const = 0;
    virtual size_t size() const = 0;
  };

  Dataset(Split split, std::shared_ptr<const Source> source);

  /// Fetches a whole batch at once. Throws c10::IndexError for an index beyond size().
  Batch get_batch(c10::ArrayRef<size_t> indices) override;
  std::optional<size_t> size() const override;

 private:
  Split split_;
  std::shared_ptr<const Source> source_;
};

class Model : public torch::nn::Module {
 public:
  torch::Tensor forward(const Input& input);

  /// The parts that run one after the other. Each takes the result of the one before.
  /// FullyShardedDataParallel gathers them one by one, for example. Code before the first part and
  /// after the last one belongs to none. Empty: this model is not a chain of parts. Throws Error
  /// where a part of --fast takes more from block to block than one tensor.
  virtual std::vector<std::shared_ptr<distributed_utils::Block>> blocks() const { return {}; }

 private:
  /// What a task implements.
  virtual torch::Tensor compute(const Input& input) = 0;
};

/// A value that makes a loss readable, in the loss's unit: "unigram" 5.41, "entropy floor" 3.02.
using Baselines = std::vector<std::pair<std::string, double>>;

struct OptimizerOptions {
  double learning_rate_factor = 1;  ///< times what the task's configuration says
};

class Task {
 public:
  virtual ~Task() = default;

  /// The names of the splits: these three first, then whatever else the task evaluates on.
  virtual std::vector<std::string> splits() const { return {"train", "validation", "test"}; }
  /// Throws Error for a name that is not one of them.
  Dataset dataset(std::string_view split) const;

  /// A freshly initialised model from torch's global generator, in the precision of the options.
  std::shared_ptr<Model> make_model() const;
  std::unique_ptr<torch::optim::Optimizer> make_optimizer(
      std::vector<torch::Tensor> parameters, const OptimizerOptions& options = {}) const;
  /// The learning rates of a run of so many optimizer steps, on all ranks alike.
  std::unique_ptr<Schedule> make_schedule(torch::optim::Optimizer& optimizer,
                                          int64_t total_steps) const;
  /// output: what the model returned; target: of the same batch.
  Loss loss(const torch::Tensor& output, const Target& target) const;

  std::vector<std::string> metric_names() const;

  /// Where an epoch adds up Loss::totals(): zeros.
  torch::Tensor no_totals(torch::Device device) const;
  /// What an epoch's totals come to. Waits for the device.
  Score score(const torch::Tensor& totals) const;

  /// What to hold a mean validation loss against; may be empty.
  virtual Baselines baselines() const = 0;
  /// The mean loss with as many digits as the options' precision carries (6 or 15 significant).
  std::string format(const Score& score) const;
  /// A score in one line for people, with its unit, its baselines and its metrics:
  /// "4.49 nats a word (perplexity 89.1; unigram 5.41, entropy floor 3.02)".
  std::string describe(const Score& score) const;

 protected:
  explicit Task(torch::Dtype precision) : precision_(precision) {}

 private:
  virtual std::shared_ptr<const Dataset::Source> new_source(std::string_view split) const = 0;
  virtual std::shared_ptr<Model> new_model() const = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const = 0;
  /// Constant learning rates, unless a task has others.
  virtual Schedule::Factor schedule(int64_t total_steps) const;
  virtual std::string in_words(double mean_loss) const = 0;
  /// Without metrics, which compute_metrics() makes.
  virtual Loss compute_loss(const torch::Tensor& output, const Target& target) const = 0;
  virtual std::vector<Metric> metrics() const { return {}; }
  /// double [metrics, 2]: a sum and a count of each. Called without gradients.
  virtual torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const;

  torch::Dtype precision_;
};

/// The task that the options name. Throws Error for an unknown name.
std::shared_ptr<Task> make_task(const Options& options);

}  // namespace tasks

#include "tasks/loaders.hpp"
