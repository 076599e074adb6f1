#include "distributed_utils/ddp.hpp"

#include <torch/csrc/distributed/c10d/comm.hpp>

#include <algorithm>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <unordered_set>

#include "ddp/ddp_buckets.hpp"
#include "ddp/in_place_reducer.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"
#include "distributed_utils/self_synchronized.hpp"

namespace distributed_utils {
namespace {

// As in Python's DDP: states travel in pieces of this size.
constexpr size_t kBroadcastBytes = size_t{250} << 20;

/// Each trainable parameter once, though modules may share one.
detail::TrainableParameters trainable_parameters(const torch::nn::Module& module) {
  detail::TrainableParameters result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second) {
      continue;
    }
    result.names.emplace(result.tensors.size(), item.key());
    result.tensors.push_back(item.value());
  }
  return result;
}

std::vector<at::Tensor> detached(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const auto& tensor : tensors) result.push_back(tensor.detach());
  return result;
}

bool contains(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& one) { return one.is_same(tensor); });
}

std::vector<at::Tensor> synchronized_by_modules(const torch::nn::Module& module,
                                                const Group& group) {
  std::vector<at::Tensor> all;
  for (const auto& part : module.modules()) {
    auto* own = dynamic_cast<SelfSynchronized*>(part.get());
    if (own == nullptr) continue;
    for (auto& tensor : own->synchronize_over(group)) all.push_back(std::move(tensor));
  }
  return all;
}

/// The parameters that are left for the reducer, as indices into all trainable ones.
std::vector<size_t> others(const std::vector<at::Tensor>& parameters,
                           const std::vector<at::Tensor>& synchronized) {
  std::vector<size_t> result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!contains(synchronized, parameters[i])) result.push_back(i);
  }
  return result;
}

detail::TrainableParameters picked(const detail::TrainableParameters& all,
                                   const std::vector<size_t>& which) {
  detail::TrainableParameters result;
  for (const size_t index : which) {
    result.names.emplace(result.tensors.size(), all.names.at(index));
    result.tensors.push_back(all.tensors[index]);
  }
  return result;
}

void give_rank_zeros_values(const torch::nn::Module& module,
                            const std::vector<at::Tensor>& trainable, const Group& group) {
  c10d::verify_params_across_processes(group, trainable, std::nullopt);
  auto states = detached(module.parameters());
  for (const auto& buffer : module.buffers()) states.push_back(buffer);
  c10d::broadcast_coalesced(group, states, kBroadcastBytes);
}

std::shared_ptr<detail::Reducer> make_reducer(detail::TrainableParameters parameters,
                                              const detail::Buckets& buckets, const Group& group,
                                              const DistributedDataParallelOptions& options) {
  if (options.reducer == ReducerKind::in_place && detail::InPlaceReducer::can(options)) {
    return detail::InPlaceReducer::make(std::move(parameters), buckets, group, options);
  }
  return std::make_shared<detail::Reducer>(std::move(parameters), buckets, group, options,
                                           options.gradient_as_bucket_view);
}

}  // namespace

/// Declared in the order of destruction, last first: the logger holds the reducer, which holds the
/// group.
struct DistributedDataParallelBase::State {
  DistributedDataParallelOptions options;
  Group group;
  size_t parameters = 0;                 // trainable ones
  std::vector<size_t> averaged;          // by the reducer: indices into them
  std::vector<at::Tensor> synchronized;  // by modules: parameters and buffers
  detail::Buckets buckets;               // the reducer's, at first, or given
  bool has_hook = false, has_begun = false;
  bool buffers_are_due = true;  // as in Python: at first, and after a forward that synchronizes
  // Both null if no parameter is averaged, and in a group of one rank, whose average is its
  // own gradient: going through the buckets would cost some 10 us a parameter and change no bit.
  std::shared_ptr<detail::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
};

DistributedDataParallelBase::DistributedDataParallelBase(
    std::shared_ptr<torch::nn::Module> module, const DistributedDataParallelOptions& options)
    : torch::nn::Module("DistributedDataParallel"),
      wrapped_(register_module("module", std::move(module))),
      state_(std::make_unique<State>()) {
  auto& state = *state_;
  state.options = options;
  state.group = group_or_world(options.group);
  const auto parameters = trainable_parameters(*wrapped_);
  state.parameters = parameters.tensors.size();
  if (parameters.tensors.empty()) {
    throw Error("DistributedDataParallel: the module has no parameter that requires a gradient.");
  }
  const bool given = !options.bucket_indices.empty();
  if (given) detail::check_buckets(options.bucket_indices, state.parameters);
  const bool is_alone = state.group->getSize() == 1;
  if (!is_alone) {
    give_rank_zeros_values(*wrapped_, parameters.tensors, state.group);
    state.synchronized = synchronized_by_modules(*wrapped_, state.group);
  }
  state.averaged = others(parameters.tensors, state.synchronized);
  if (state.averaged.empty()) return;
  auto averaged = picked(parameters, state.averaged);
  state.buckets = given ? detail::for_reducer(options.bucket_indices, state.averaged)
                        : detail::default_buckets(averaged.tensors, options);
  if (is_alone) return;
  state.reducer = make_reducer(std::move(averaged), state.buckets, state.group, options);
  state.logger = std::make_shared<c10d::Logger>(state.reducer);
  state.reducer->set_logger(state.logger);
}

DistributedDataParallelBase::~DistributedDataParallelBase() = default;

bool DistributedDataParallelBase::trains() const {
  return state_->group->getSize() > 1 && torch::GradMode::is_enabled();
}

bool DistributedDataParallelBase::communicates() const { return trains() && synchronizes_; }

void DistributedDataParallelBase::before_forward() {
  if (!trains()) return;
  state_->has_begun |= synchronizes_;
  if (synchronizes_ && state_->reducer) {
    state_->reducer->settle_buckets();
    state_->reducer->prepare_for_forward();
  }
  if (state_->options.broadcast_buffers && state_->buffers_are_due) broadcast_buffers();
  state_->buffers_are_due = synchronizes_;
}

void DistributedDataParallelBase::broadcast_buffers() {
  std::vector<at::Tensor> buffers;
  for (const auto& buffer : wrapped_->buffers()) {
    if (!contains(state_->synchronized, buffer)) buffers.push_back(buffer);
  }
  if (!buffers.empty()) c10d::broadcast_coalesced(state_->group, buffers, kBroadcastBytes);
}

void DistributedDataParallelBase::after_forward(const std::vector<torch::Tensor>& outputs) {
  if (!communicates()) return;
  if (Observer* const watching = observer()) watching->forward_ended();
  if (state_->reducer) state_->reducer->prepare(outputs);
}

bool DistributedDataParallelBase::needs_outputs() const {
  return state_->options.find_unused_parameters;
}

void DistributedDataParallelBase::register_comm_hook(CommHook hook) {
  if (!hook) throw Error("register_comm_hook: the hook is empty. Fix: give a function.");
  if (state_->has_hook) {
    throw Error("register_comm_hook: this model already has a hook. Fix: register one hook, once.");
  }
  if (state_->has_begun) {
    throw Error("register_comm_hook: training has begun. Fix: call it before the first forward.");
  }
  state_->has_hook = true;
  if (state_->reducer) state_->reducer->set_hook(std::move(hook));
}

void DistributedDataParallelBase::zero_grad(bool set_to_none) {
  for (auto& parameter : wrapped_->parameters()) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      gradient.reset();
    } else {
      gradient = gradient.detach().zero_();  // detach_(), which torch uses, fails on views
    }
  }
}

std::vector<std::vector<size_t>> DistributedDataParallelBase::bucket_indices() const {
  auto buckets =
      state_->reducer ? state_->logger->get_per_bucket_variable_indices() : state_->buckets;
  return detail::for_users(std::move(buckets), state_->averaged, state_->parameters);
}

std::vector<std::vector<size_t>> DistributedDataParallelBase::settle_buckets() {
  const auto& reducer = state_->reducer;
  if (reducer) {
    reducer->settle_buckets();
    if (reducer->should_rebuild_buckets()) return {};
  }
  return bucket_indices();
}

std::vector<Placement> DistributedDataParallelBase::placements() const {
  return distributed_utils::placements(*wrapped_);
}

namespace detail {
void fail_unknown_output() {
  throw Error(
      "DistributedDataParallel: find_unused_parameters cannot find tensors in what forward "
      "returned. Fix: overload collect_tensors for its type, or return tensors, vectors, maps, "
      "pairs or tuples.");
}
}  // namespace detail

}  // namespace distributed_utils
