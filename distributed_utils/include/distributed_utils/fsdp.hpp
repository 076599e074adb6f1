#pragma once
/// FullyShardedDataParallel trains models that are too large for one GPU. Each rank keeps a share
/// of every parameter, gradient and optimizer state. Whole parameters exist only while their part
/// of the model computes.
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed_utils/block.hpp"
#include "distributed_utils/collect_tensors.hpp"
#include "distributed_utils/no_sync.hpp"
#include "distributed_utils/placement.hpp"
#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Types of whole parameters and of gradients in transit. Shards, their gradients and the
/// optimizer's state keep the parameters' own type.
struct MixedPrecisionPolicy {
  /// Type of gathered parameters and of the computation. Empty: as stored. The caller converts the
  /// model's input.
  std::optional<at::ScalarType> param_dtype = {};
  /// Type in which gradients travel and are added up. Empty: as computed.
  std::optional<at::ScalarType> reduce_dtype = {};
};

struct FullyShardedDataParallelOptions {
  Group group = {};  ///< whose ranks share the parameters; empty: the world
  /// For hybrid sharding: the ranks that hold the same shards, one from each sharding group.
  /// Gradients are averaged over them too. Empty: none.
  Group replicate_group = {};
  /// Parts of the model to gather and free one by one, in the order of forward. All other
  /// parameters form one more unit, which is whole from the beginning of forward to the end of
  /// backward().
  std::vector<std::shared_ptr<Block>> units = {};
  /// False: units stay whole from forward until their backward. That saves gathers and costs
  /// memory.
  bool reshard_after_forward = true;
  MixedPrecisionPolicy mp_policy = {};
  int forward_prefetch = 1;   ///< units that are gathered ahead in forward
  int backward_prefetch = 1;  ///< the same in backward()
  /// Copy the first rank's buffers to all ranks before each training forward, like
  /// DistributedDataParallel.
  bool broadcast_buffers = true;
};

namespace detail {
class Units;
[[noreturn]] void fail_unknown_fsdp_output();
}  // namespace detail

/// While it lives, the wrapped module's parameters are whole on all ranks, in the type of the
/// computation, and forwards without gradients make no collective. Only read them: changes are
/// lost.
class WholeParameters {
 public:
  explicit WholeParameters(std::shared_ptr<detail::Units> units);
  ~WholeParameters();
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

 private:
  std::shared_ptr<detail::Units> units_;
};

/// The part that does not depend on the wrapped module's type. Its parameters are this rank's
/// shards, and its buffers are the wrapped module's, under the wrapped module's names. The wrapped
/// module is not its child.
///
/// The algorithm is that of PyTorch's fully_shard (FSDP2). Each parameter is cut along its first
/// dimension, like torch.chunk. A unit is gathered before its forward, freed after it, and gathered
/// again for its backward. One reduce-scatter averages and cuts its gradients while other units
/// compute. Parameters are gathered directly into the memory where they are used, and large
/// gradients are sent in place. At most one reduce-scatter runs at a time.
///
/// All ranks must call forward() and backward() equally often, even without gradients, because each
/// call gathers. Where they cannot, for example in evaluation, call summon_full_params() first. All
/// ranks must call the same units in the same order. If backward() does not reach a parameter of a
/// called unit, its gradient is zero. Parameters of units that forward() does not call get no
/// gradient.
///
/// A group of one rank communicates nothing: without replicas and param_dtype the shards are the
/// module's own parameters. Modules that could keep their own parameters equal
/// (self_synchronized.hpp) are treated like all others.
class FullyShardedDataParallelBase : public torch::nn::Module, public Placed {
 public:
  ~FullyShardedDataParallelBase() override;

  using NoSync = distributed_utils::NoSync;
  /// While the returned object lives, backward() adds to local gradients without communication. The
  /// first backward() after it averages the sums. These gradients are whole and belong to the
  /// module's parameters. They cost memory, and an optimizer's zero_grad() does not see them.
  [[nodiscard]] NoSync no_sync() { return NoSync(synchronizes_); }

  /// Gathers all units; every rank calls it, between steps. See WholeParameters.
  [[nodiscard]] WholeParameters summon_full_params();

  /// unshard() starts to gather all units for the next forward(), reshard() frees them all. Every
  /// rank must call it, between steps.
  void unshard();
  void reshard();

  /// Scales all gradients so that their norm, over all parameters and ranks, is at most max_norm.
  /// Returns the norm that it was, without waiting for the device. Every rank calls it.
  at::Tensor clip_grad_norm_(double max_norm);

  /// Drops (or zeroes) the shards' gradients, and drops the gradients that no_sync() has added up.
  void zero_grad(bool set_to_none = true) override;

  /// Sets the wrapped module's mode too.
  void train(bool on = true) override;

  /// Throws Error. Move a module to its device and type before you wrap it.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  /// The shards with their places in the whole model, and the buffers.
  std::vector<Placement> placements() const override;

  /// Frees whole parameters, because loading makes them out of date.
  void pieces_were_loaded() override { reshard(); }

  std::shared_ptr<torch::nn::Module> wrapped_module() const { return wrapped_; }

 protected:
  /// Checks that all ranks hold the same parameters (shape and type), gives them rank 0's values
  /// and cuts them. Throws Error before setup(), and for units and parameters that cannot be
  /// sharded, which it names; c10::Error if ranks differ.
  FullyShardedDataParallelBase(std::shared_ptr<torch::nn::Module> module,
                               const FullyShardedDataParallelOptions& options);

  /// A forward of the wrapped module, from its beginning to its end, also if it throws.
  class ForwardPass {
   public:
    explicit ForwardPass(FullyShardedDataParallelBase& model);
    ~ForwardPass();
    ForwardPass(const ForwardPass&) = delete;
    ForwardPass& operator=(const ForwardPass&) = delete;
    bool needs_outputs() const;
    void end(const std::vector<torch::Tensor>& outputs);

   private:
    FullyShardedDataParallelBase& model_;
    bool is_active_;
  };

 private:
  struct State;
  void broadcast_buffers();

  std::shared_ptr<torch::nn::Module> wrapped_;
  std::unique_ptr<State> state_;
  bool synchronizes_ = true;
};

/// The wrapper around a module of type M.
template <typename M>
class FullyShardedDataParallelImpl : public FullyShardedDataParallelBase {
 public:
  explicit FullyShardedDataParallelImpl(std::shared_ptr<M> module,
                                        const FullyShardedDataParallelOptions& options = {})
      : FullyShardedDataParallelBase(module, options), module_(std::move(module)) {}

  /// Runs the wrapped module's forward, whatever its arguments are. Its result must be one that
  /// collect_tensors knows, if gradients are wanted.
  template <typename... Args>
  auto forward(Args&&... args) {
    ForwardPass pass(*this);
    auto output = module_->forward(std::forward<Args>(args)...);
    std::vector<torch::Tensor> tensors;
    if (pass.needs_outputs()) {
      if constexpr (requires { collect_tensors(output, tensors); }) {
        collect_tensors(output, tensors);
      } else {
        detail::fail_unknown_fsdp_output();
      }
    }
    pass.end(tensors);
    return output;
  }

  /// The wrapped module. Its parameters are whole while forward or summon_full_params() has
  /// gathered them; reading one at another time throws c10::Error, which says so.
  const std::shared_ptr<M>& module() const { return module_; }

 private:
  std::shared_ptr<M> module_;
};

/// Holds a FullyShardedDataParallelImpl as torch's module holders do:
///   auto model = FullyShardedDataParallel(module, {.units = module->blocks()});
///   torch::optim::AdamW optimizer(model->parameters());  // after it: of the shards
template <typename M>
class FullyShardedDataParallel : public torch::nn::ModuleHolder<FullyShardedDataParallelImpl<M>> {
 public:
  using Impl = FullyShardedDataParallelImpl<M>;

  /// module: a shared_ptr to a module, on its device already. Throws as the base class says.
  explicit FullyShardedDataParallel(std::shared_ptr<M> module,
                                    const FullyShardedDataParallelOptions& options = {})
      : torch::nn::ModuleHolder<Impl>(std::make_shared<Impl>(std::move(module), options)) {}
  /// module: a module holder such as torch::nn::Linear.
  explicit FullyShardedDataParallel(const torch::nn::ModuleHolder<M>& module,
                                    const FullyShardedDataParallelOptions& options = {})
      : FullyShardedDataParallel(module.ptr(), options) {}

  /// Like a shared_ptr's: a const holder still gives a module that can be trained.
  Impl* operator->() const { return this->impl_.get(); }
  Impl& operator*() const { return *this->impl_; }
};

template <typename M>
FullyShardedDataParallel(std::shared_ptr<M>) -> FullyShardedDataParallel<M>;
template <typename M>
FullyShardedDataParallel(std::shared_ptr<M>, FullyShardedDataParallelOptions)
    -> FullyShardedDataParallel<M>;

}  // namespace distributed_utils
