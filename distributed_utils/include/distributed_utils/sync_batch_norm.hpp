#pragma once
/// SyncBatchNorm2d: batch normalisation over the batches of all ranks. W ranks with B samples each
/// compute the same as one rank with W * B samples.
#include <torch/nn/modules/batchnorm.h>

#include <memory>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Python's torch.nn.SyncBatchNorm (docs.pytorch.org/docs/stable/generated/
/// torch.nn.SyncBatchNorm.html), for inputs [samples, channels, height, width]; on CPUs, too. While
/// it trains, mean and variance are those of all ranks' inputs. Each rank counts as much as it
/// brings, which may be nothing. All ranks of the group call forward() and backward() together;
/// each makes one collective. While it evaluates, and in a group of one rank, it is a BatchNorm2d
/// and makes none. Parameters and buffers have BatchNorm2d's names, so either can load the other's.
///
/// Gradients of weight and bias are this rank's part, as those of other parameters are: averaging
/// is DistributedDataParallel's.
class SyncBatchNorm2dImpl
    : public torch::nn::NormImplBase<2, SyncBatchNorm2dImpl, torch::nn::BatchNormOptions> {
 public:
  /// group: whose batches are one; empty: the world, if there is one when forward() is called.
  explicit SyncBatchNorm2dImpl(const torch::nn::BatchNormOptions& norm, const Group& group = {})
      : NormImplBase(norm), group_(group) {}
  explicit SyncBatchNorm2dImpl(int64_t num_features)
      : SyncBatchNorm2dImpl(torch::nn::BatchNormOptions(num_features)) {}

  /// Takes over the other's parameters, which stay the same tensors, the memory of its buffers, and
  /// whether it trains.
  SyncBatchNorm2dImpl(const torch::nn::BatchNorm2dImpl& from, const Group& group);

  /// Throws c10::Error for an input that is not 4-dimensional or has another number of channels.
  at::Tensor forward(const at::Tensor& input);

  /// False: a BatchNorm2d for good, until convert_sync_batchnorm(). So a model with a member of
  /// this type can be trained either way.
  void synchronize(bool on) { synchronizes_ = on; }
  bool synchronizes() const { return synchronizes_; }
  void set_group(const Group& group) { group_ = group; }

  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  Group group_;
  bool synchronizes_ = true;
};
TORCH_MODULE(SyncBatchNorm2d);

/// Makes every BatchNorm2d in the module one that synchronizes over the group, with the parameters
/// and buffers that it had. Returns the module; another one only if it is itself a BatchNorm2d.
/// Optimizers stay valid. To be called before DistributedDataParallel.
///
/// C++ members have types, so a BatchNorm2d can be replaced in a torch::nn::Sequential only. A
/// module with a member of its own declares it as SyncBatchNorm2d and says synchronize(false). For
/// a BatchNorm elsewhere, and for BatchNorm1d and BatchNorm3d, it throws Error, which names it, and
/// changes nothing.
std::shared_ptr<torch::nn::Module> convert_sync_batchnorm(
    const std::shared_ptr<torch::nn::Module>& module, const Group& group = {});

}  // namespace distributed_utils
