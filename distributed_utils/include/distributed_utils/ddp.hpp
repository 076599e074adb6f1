#pragma once
/// DistributedDataParallel trains one model on all ranks. It averages the gradients over the ranks
/// while backward() still runs.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <utility>
#include <vector>

#include "distributed_utils/collect_tensors.hpp"
#include "distributed_utils/comm_hooks.hpp"
#include "distributed_utils/no_sync.hpp"
#include "distributed_utils/placement.hpp"
#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// How gradients travel. Both give the same bits.
enum class ReducerKind {
  in_place,  ///< averaged where they are, without c10d's copies into buckets and back
  plain,     ///< as c10d::Reducer does it, and Python with it
};

struct DistributedDataParallelOptions {
  Group group = {};                      ///< whose ranks average; empty: the world
  int64_t bucket_cap_bytes = 25 << 20;   ///< gradients travel in buckets of about this size
  int64_t first_bucket_bytes = 1 << 20;  ///< the first is smaller, so that traffic starts early
  /// Copy rank 0's buffers to all ranks before each training forward, as in Python. A forward that
  /// follows another one under no_sync() is an exception. Between two copies each rank has its own
  /// buffers (see buffers.hpp).
  bool broadcast_buffers = true;
  bool find_unused_parameters = false;  ///< for models whose forward leaves parameters out
  /// Keep gradients as views into c10d's buckets, as in Python. LibTorch's Optimizer::zero_grad
  /// rejects views, so call zero_grad of the DistributedDataParallel. It saves no memory here,
  /// because gradients travel without buckets anyway.
  bool gradient_as_bucket_view = false;
  /// Buckets as indices into the trainable parameters, in the order in which gradients become
  /// ready. Empty: computed, and rebuilt after the first step in the order of that step. Given
  /// buckets do not change. A resumed run needs the buckets of the first run (settle_buckets()) to
  /// repeat its bits, because the buckets decide the order of additions.
  std::vector<std::vector<size_t>> bucket_indices = {};
  /// find_unused_parameters and gradient_as_bucket_view always use the plain one.
  ReducerKind reducer = ReducerKind::in_place;
};

/// The part that does not depend on the wrapped module's type. It is an ordinary module with one
/// child, "module": the wrapped one.
///
/// The algorithm is c10d::Reducer's (Li et al., PyTorch Distributed, VLDB 2020, section 3.2):
/// backward() starts the all-reduce of each bucket of gradients, last layer first, as soon as the
/// bucket is ready, and continues. With ReducerKind::in_place, large gradients are averaged in
/// place. The other gradients of a bucket become parts of one tensor. Forward passes without
/// gradients make no collective, so ranks may evaluate different numbers of batches. A group of one
/// rank communicates nothing. Modules that keep their own parameters equal (self_synchronized.hpp)
/// are left alone.
class DistributedDataParallelBase : public torch::nn::Module, public Placed {
 public:
  ~DistributedDataParallelBase() override;

  using NoSync = distributed_utils::NoSync;
  /// While the returned object lives, backward() adds to local gradients without communication. The
  /// first backward() after it averages the sums.
  [[nodiscard]] NoSync no_sync() { return NoSync(synchronizes_); }

  /// Replaces the all-reduce of each bucket by a hook, for example bf16_compress_hook. Call it
  /// once, before the first forward, with the same hook on every rank. In a group of one rank
  /// nothing calls the hook. Throws Error for an empty hook, a second one, or one that comes too
  /// late.
  void register_comm_hook(CommHook hook);

  /// Drops (or zeroes) all gradients, bucket views as well.
  void zero_grad(bool set_to_none = true) override;

  /// The current buckets: see DistributedDataParallelOptions::bucket_indices.
  std::vector<std::vector<size_t>> bucket_indices() const;

  /// The buckets of all later steps. It rebuilds now what the next forward would rebuild. Empty
  /// before the first backward(), when they are still unknown. Every rank must call it, between two
  /// steps.
  std::vector<std::vector<size_t>> settle_buckets() override;

  /// The wrapped module's, whole and replicated.
  std::vector<Placement> placements() const override;

  std::shared_ptr<torch::nn::Module> wrapped_module() const { return wrapped_; }

 protected:
  /// Checks that all ranks hold the same parameters (shape and type) and copies rank 0's values to
  /// all. Throws Error before setup(), if nothing is trainable, and for another model's
  /// bucket_indices. Throws c10::Error if ranks differ.
  DistributedDataParallelBase(std::shared_ptr<torch::nn::Module> module,
                              const DistributedDataParallelOptions& options);

  void before_forward();
  void after_forward(const std::vector<torch::Tensor>& outputs);
  bool needs_outputs() const;

 private:
  bool trains() const;
  bool communicates() const;
  void broadcast_buffers();

  struct State;
  std::shared_ptr<torch::nn::Module> wrapped_;
  std::unique_ptr<State> state_;
  bool synchronizes_ = true;
};

namespace detail {
[[noreturn]] void fail_unknown_output();
}

/// The wrapper around a module of type M.
template <typename M>
class DistributedDataParallelImpl : public DistributedDataParallelBase {
 public:
  explicit DistributedDataParallelImpl(std::shared_ptr<M> module,
                                       const DistributedDataParallelOptions& options = {})
      : DistributedDataParallelBase(module, options), module_(std::move(module)) {}

  /// Runs the wrapped module's forward, whatever its arguments and result are.
  template <typename... Args>
  auto forward(Args&&... args) {
    before_forward();
    auto output = module_->forward(std::forward<Args>(args)...);
    std::vector<torch::Tensor> tensors;
    if (needs_outputs()) {
      if constexpr (requires { collect_tensors(output, tensors); }) {
        collect_tensors(output, tensors);
      } else {
        detail::fail_unknown_output();
      }
    }
    after_forward(tensors);
    return output;
  }

  /// The wrapped module. Calling its forward directly leaves gradients unaveraged.
  const std::shared_ptr<M>& module() const { return module_; }

 private:
  std::shared_ptr<M> module_;
};

/// Holds a DistributedDataParallelImpl, like torch's module holders:
///   auto model = DistributedDataParallel(module);
///   model->forward(input), model->parameters(), model->train(), auto guard = model->no_sync();
template <typename M>
class DistributedDataParallel : public torch::nn::ModuleHolder<DistributedDataParallelImpl<M>> {
 public:
  using Impl = DistributedDataParallelImpl<M>;

  /// module: a shared_ptr to a module, on its device already. Throws as the base class says.
  explicit DistributedDataParallel(std::shared_ptr<M> module,
                                   const DistributedDataParallelOptions& options = {})
      : torch::nn::ModuleHolder<Impl>(std::make_shared<Impl>(std::move(module), options)) {}
  /// module: a module holder such as torch::nn::Linear.
  explicit DistributedDataParallel(const torch::nn::ModuleHolder<M>& module,
                                   const DistributedDataParallelOptions& options = {})
      : DistributedDataParallel(module.ptr(), options) {}

  /// Works like a shared_ptr's: a const holder still gives a trainable module.
  Impl* operator->() const { return this->impl_.get(); }
  Impl& operator*() const { return *this->impl_; }
};

template <typename M>
DistributedDataParallel(std::shared_ptr<M>) -> DistributedDataParallel<M>;
template <typename M>
DistributedDataParallel(std::shared_ptr<M>, DistributedDataParallelOptions)
    -> DistributedDataParallel<M>;

}  // namespace distributed_utils
