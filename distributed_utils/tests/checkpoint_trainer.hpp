#pragma once
/// A small training run that can be saved and resumed, as a trainer would do it.
#include <torch/torch.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/sampler.hpp"

namespace checkpoint_test {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout);
  torch::Tensor forward(const torch::Tensor& input);

  torch::nn::Linear first, second, third;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(Net);

struct Settings {
  distributed_utils::Group group = {};
  int64_t batch_size = 4;  ///< samples per rank and step
  double dropout = 0.3;
  torch::Dtype precision = torch::kFloat;
  bool with_layout = true;  ///< takes the checkpoint's bucket layout
};

constexpr size_t kSamples = 97;  // no number of ranks divides it

class Trainer {
 public:
  /// Continues from `start`, which may be empty. Whatever start does not restore differs from run
  /// to run and from rank to rank.
  Trainer(const Settings& settings, distributed_utils::Checkpoint start);

  /// Trains up to `step`, the last thing that this trainer does; saves after each if asked to.
  void train(int64_t step, distributed_utils::Checkpoints* each = nullptr);
  void save(distributed_utils::Checkpoints& checkpoints);

  /// Parameters, optimizer state, and what the generator gives next.
  distributed_utils::StateDict state() const;

  /// Of each step that this trainer made: this rank's samples, and the mean loss over all ranks.
  std::map<int64_t, std::vector<size_t>> ids;
  std::map<int64_t, double> losses;

 private:
  void step(const std::vector<size_t>& batch);

  Settings settings_;
  Net net_;
  std::optional<distributed_utils::DistributedDataParallel<NetImpl>> model_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  distributed_utils::DistributedSampler sampler_;
  torch::Tensor total_ = torch::zeros({1}, torch::kDouble);  // of this rank's losses
  int64_t step_ = 0;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
};

/// Both have the same names and the same bits.
bool same_bits(const distributed_utils::StateDict& a, const distributed_utils::StateDict& b);

}  // namespace checkpoint_test
