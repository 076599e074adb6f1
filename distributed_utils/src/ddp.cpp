#include "distributed_utils/ddp.hpp"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <unordered_set>

#include "distributed_utils/error.hpp"
#include "distributed_utils/recording.hpp"
#include "reducer.hpp"

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

std::vector<std::vector<size_t>> default_buckets(const std::vector<at::Tensor>& parameters,
                                                 const DistributedDataParallelOptions& options) {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<size_t>(options.first_bucket_bytes),
                   static_cast<size_t>(options.bucket_cap_bytes)});
  // Gradients become ready roughly in the reverse order of the parameters.
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

/// Throws Error unless each parameter is in one bucket.
void check_buckets(const std::vector<std::vector<size_t>>& buckets, size_t parameters) {
  std::vector<bool> seen(parameters, false);
  size_t count = 0;
  bool valid = true;
  for (const auto& bucket : buckets) {
    valid = valid && !bucket.empty();
    for (const size_t index : bucket) {
      valid = valid && index < parameters && !seen[index];
      if (valid) seen[index] = true;
      ++count;
    }
  }
  if (valid && count == parameters) return;
  throw Error(
      fmt::format("DistributedDataParallel: bucket_indices do not name each of the {} trainable "
                  "parameters once. Mend: give those of a run of the same model, or none.",
                  parameters));
}

}  // namespace

/// Declared in the order of destruction, last first: the logger holds the reducer, which holds the
/// group.
struct DistributedDataParallelBase::State {
  DistributedDataParallelOptions options;
  Group group;
  std::vector<std::vector<size_t>> buckets;  // at first, or given
  bool has_hook = false, has_begun = false;
  // Both null in a group of one rank, whose average is its own gradient: going through the buckets
  // would cost some 10 us a parameter and change no bit.
  std::shared_ptr<detail::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
};

DistributedDataParallelBase::DistributedDataParallelBase(
    std::shared_ptr<torch::nn::Module> module, const DistributedDataParallelOptions& options)
    : torch::nn::Module("DistributedDataParallel"),
      wrapped_(register_module("module", std::move(module))),
      state_(std::make_unique<State>()) {
  state_->options = options;
  state_->group = group_or_world(options.group);
  auto parameters = trainable_parameters(*wrapped_);
  if (parameters.tensors.empty()) {
    throw Error("DistributedDataParallel: the module has no parameter that requires a gradient.");
  }
  const bool given = !options.bucket_indices.empty();
  if (given) check_buckets(options.bucket_indices, parameters.tensors.size());
  state_->buckets = given ? options.bucket_indices : default_buckets(parameters.tensors, options);
  if (state_->group->getSize() == 1) return;

  c10d::verify_params_across_processes(state_->group, parameters.tensors, std::nullopt);
  auto states = detached(wrapped_->parameters());
  for (const auto& buffer : wrapped_->buffers()) states.push_back(buffer);
  c10d::broadcast_coalesced(state_->group, states, kBroadcastBytes);

  state_->reducer =
      detail::Reducer::make(std::move(parameters), state_->buckets, state_->group, options);
  state_->logger = std::make_shared<c10d::Logger>(state_->reducer);
  state_->reducer->set_logger(state_->logger);
}

DistributedDataParallelBase::~DistributedDataParallelBase() = default;

void DistributedDataParallelBase::before_forward() {
  if (!state_->reducer || !torch::GradMode::is_enabled() || !synchronizes_) return;
  state_->has_begun = true;
  state_->reducer->settle_buckets();
  state_->reducer->prepare_for_forward();
  if (!state_->options.broadcast_buffers) return;
  const auto buffers = wrapped_->buffers();
  if (!buffers.empty()) c10d::broadcast_coalesced(state_->group, buffers, kBroadcastBytes);
}

void DistributedDataParallelBase::after_forward(const std::vector<torch::Tensor>& outputs) {
  if (!state_->reducer || !torch::GradMode::is_enabled() || !synchronizes_) return;
  if (recording::enabled()) recording::note_place();
  state_->reducer->prepare(outputs);
}

bool DistributedDataParallelBase::needs_outputs() const {
  return state_->options.find_unused_parameters;
}

void DistributedDataParallelBase::register_comm_hook(CommHook hook) {
  if (!hook) throw Error("register_comm_hook: the hook is empty. Mend: give a function.");
  if (state_->has_hook) {
    throw Error("register_comm_hook: this model has one already. Mend: register one hook, once.");
  }
  if (state_->has_begun) {
    throw Error("register_comm_hook: training has begun. Mend: call it before the first forward.");
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
  if (!state_->reducer) return state_->buckets;
  return state_->logger->get_per_bucket_variable_indices();
}

std::vector<std::vector<size_t>> DistributedDataParallelBase::settle_buckets() {
  const auto& reducer = state_->reducer;
  if (reducer) {
    reducer->settle_buckets();
    if (reducer->should_rebuild_buckets()) return {};
  }
  return bucket_indices();
}

namespace detail {
void fail_unknown_output() {
  throw Error(
      "DistributedDataParallel: find_unused_parameters must look into what forward returned. Mend: "
      "overload collect_tensors for its type, or return tensors, vectors, maps, pairs or tuples.");
}
}  // namespace detail

}  // namespace distributed_utils
