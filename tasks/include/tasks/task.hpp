#pragma once
/// A task is a workload as a black box: data, model, loss, optimizer. Trainers know tasks by this
/// page only, never by name. What a task is made to do passes through the non-virtual functions
/// here, where it can be recorded for the checker (see distributed_utils/recording.hpp); a task
/// implements the private virtual ones.
#include <torch/data/datasets/base.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/options.hpp"

namespace tasks {

enum class Split { train, validation, test };

/// One batch of samples, first dimension: the samples.
struct Batch {
  torch::Tensor input;   ///< [batch, ...]
  torch::Tensor target;  ///< [batch, ...]

  /// The batch on `device`. This is where a task learns its device.
  Batch to(torch::Device device) const;
};

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

/// A loss as a sum and the number of targets in it, so that averages over batches, ranks and
/// samples of different lengths are exact: add sums, add counts, divide once.
struct Loss {
  torch::Tensor sum;  ///< scalar, differentiable
  int64_t count = 0;  ///< targets in the sum

  /// The mean loss per target: what backward() starts from.
  torch::Tensor mean() const;
  /// {sum, count} as two doubles on the loss's device, detached: what an epoch adds up.
  torch::Tensor totals() const;
};

class Model : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
};

/// A value that makes a loss readable, in the loss's unit: "unigram" 5.41, "entropy floor" 3.02.
using Marks = std::vector<std::pair<std::string, double>>;

class Task {
 public:
  virtual ~Task() = default;

  virtual Dataset dataset(Split split) const = 0;

  /// A freshly initialised model from torch's global generator, in the precision of the options.
  std::shared_ptr<Model> make_model() const;
  std::unique_ptr<torch::optim::Optimizer> make_optimizer(
      std::vector<torch::Tensor> parameters) const;
  /// output: what the model returned; target: of the same batch.
  Loss loss(const torch::Tensor& output, const torch::Tensor& target) const;

  /// What to hold a mean validation loss against; may be empty.
  virtual Marks marks() const = 0;
  /// A mean loss with as many digits as the options' precision carries (6 or 15 significant).
  std::string format(double mean_loss) const;
  /// A mean loss in one line for people, with its unit and its marks:
  /// "4.49 nats a word (perplexity 89.1; unigram 5.41, entropy floor 3.02)".
  std::string describe(double mean_loss) const;

 protected:
  explicit Task(torch::Dtype precision) : precision_(precision) {}

 private:
  virtual std::shared_ptr<Model> new_model() const = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const = 0;
  virtual std::string in_words(double mean_loss) const = 0;
  virtual Loss compute_loss(const torch::Tensor& output, const torch::Tensor& target) const = 0;

  void record_parameters(const std::vector<torch::Tensor>& parameters) const;

  torch::Dtype precision_;
  // Kept only while recording, to name the parameters that an optimizer gets.
  mutable std::weak_ptr<Model> recorded_model_;
};

/// The task that the options name. Throws Error for an unknown name.
std::shared_ptr<Task> make_task(const Options& options);

}  // namespace tasks

#include "tasks/loaders.hpp"
