#pragma once
/// FullyShardedDataParallel: each rank keeps a share of every parameter, gradient and optimizer
/// state; whole parameters are there only while the part of the model that they belong to computes.
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

/// Types of whole parameters and of gradients under way. Shards keep the parameters' own type, and
/// so do the gradients and the state that the optimizer sees.
struct MixedPrecisionPolicy {
  /// Gathered and computed in; empty: as stored. The caller converts the model's input.
  std::optional<at::ScalarType> param_dtype = {};
  /// Gradients are added up and travel in this; empty: as computed.
  std::optional<at::ScalarType> reduce_dtype = {};
};

struct FullyShardedDataParallelOptions {
  Group group = {};  ///< whose ranks share the parameters; empty: the world
  /// Hybrid sharding: ranks that hold the same shards, one of each sharding group. Gradients are
  /// averaged over them as well. Empty: none.
  Group replicate_group = {};
  /// Parts of the model that are gathered and freed one by one, in the order of forward; what they
  /// leave over is one more unit, whole from the beginning of forward to the end of backward().
  std::vector<std::shared_ptr<Block>> units = {};
  /// False: units stay whole from forward until their backward; fewer gathers for more memory.
  bool reshard_after_forward = true;
  MixedPrecisionPolicy mp_policy = {};
  int forward_prefetch = 1;   ///< units that are gathered ahead in forward
  int backward_prefetch = 1;  ///< the same in backward()
  /// The first rank's buffers go to all before each training forward, as DistributedDataParallel's
  /// option of this name does.
  bool broadcast_buffers = true;
};

namespace detail {
class Units;
[[noreturn]] void fail_unknown_fsdp_output();
}  // namespace detail

/// While it lives, the wrapped module's parameters are whole on all ranks, in the type that they
/// are computed in, and forwards without gradients make no collective. They are for reading: what
/// is written into them is lost.
class WholeParameters {
 public:
  explicit WholeParameters(std::shared_ptr<detail::Units> units);
  ~WholeParameters();
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

 private:
  std::shared_ptr<detail::Units> units_;
};

/// What does not depend on the wrapped module's type. A module whose parameters are this rank's
/// shards, and whose buffers are the wrapped module's, all by the wrapped module's own names; the
/// wrapped module itself is no child of it.
///
/// The algorithm is that of PyTorch's fully_shard (FSDP2): each parameter is cut along its first
/// dimension as torch.chunk cuts; a unit is gathered before its forward, freed after it, gathered
/// again for its backward, and its gradients are averaged and cut by one reduce-scatter, while
/// other units compute. Whole parameters are gathered into the memory in which they are used, and
/// large gradients travel from where they are. At most one reduce-scatter is under way.
///
/// All ranks call forward() and backward() equally often, without gradients too, since each
/// gathers; where they cannot, in evaluation say, summon_full_params() goes before. All ranks call
/// the same units in the same order. A parameter of such a unit that backward() does not reach gets
/// a gradient of zeros; one of a unit that forward() does not call gets none.
///
/// A group of one rank communicates nothing: without replicas and param_dtype the shards are the
/// module's own parameters. What modules keep alike themselves (self_synchronized.hpp) is not asked
/// to: their gradients are averaged as all others.
class FullyShardedDataParallelBase : public torch::nn::Module, public Placed {
 public:
  ~FullyShardedDataParallelBase() override;

  using NoSync = distributed_utils::NoSync;
  /// While the returned object lives, backward() adds to local gradients without communication; the
  /// first backward() of a forward after it averages what was added up. These gradients are whole
  /// and belong to the module's parameters: they cost memory, and an optimizer's zero_grad() does
  /// not see them.
  [[nodiscard]] NoSync no_sync() { return NoSync(synchronizes_); }

  /// Gathers all units; every rank calls it, between steps. See WholeParameters.
  [[nodiscard]] WholeParameters summon_full_params();

  /// Starts to gather all units, so that the next forward() finds them there, or frees them all.
  /// Every rank calls it, between steps.
  void unshard();
  void reshard();

  /// Scales all gradients so that their norm, over all parameters and ranks, is at most max_norm.
  /// Returns the norm that it was, without waiting for the device. Every rank calls it.
  at::Tensor clip_grad_norm_(double max_norm);

  /// Drops (or zeroes) the shards' gradients, and drops those that no_sync() has added up.
  void zero_grad(bool set_to_none = true) override;

  /// The wrapped module's mode as well.
  void train(bool on = true) override;

  /// Throws Error: a module goes to its device and type before it is wrapped.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  /// The shards, where they lie in the whole model, and the buffers.
  std::vector<Placement> placements() const override;

  /// Frees whole parameters, be they gathered ahead or summoned: they are those of before.
  void pieces_were_loaded() override { reshard(); }

  std::shared_ptr<torch::nn::Module> wrapped_module() const { return wrapped_; }

 protected:
  /// Checks that all ranks hold the same parameters (shape and type), gives them rank 0's values
  /// and cuts them. Throws Error before setup(), and for units and parameters that cannot be
  /// sharded, which it names; c10::Error if ranks differ.
  FullyShardedDataParallelBase(std::shared_ptr<torch::nn::Module> module,
                               const FullyShardedDataParallelOptions& options);

  /// A forward of the wrapped module, from its beginning to its end, whichever way it ends.
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
