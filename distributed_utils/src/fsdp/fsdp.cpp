#include "distributed_utils/fsdp.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>

#include "distributed_utils/clip_grad_norm.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"
#include "fsdp/shard_tree.hpp"
#include "fsdp/units.hpp"

namespace distributed_utils {
namespace {

void check_options(const FullyShardedDataParallelOptions& options) {
  if (options.forward_prefetch < 0 || options.backward_prefetch < 0) {
    throw Error(fmt::format(
        "FullyShardedDataParallel: forward_prefetch {} and backward_prefetch {} count units "
        "gathered ahead. Fix: give 0 or more.",
        options.forward_prefetch, options.backward_prefetch));
  }
  for (const auto& type : {options.mp_policy.param_dtype, options.mp_policy.reduce_dtype}) {
    if (!type || c10::isFloatingType(*type)) continue;
    throw Error(fmt::format(
        "FullyShardedDataParallel: parameters cannot be {}. Fix: choose a floating-point type for "
        "mp_policy.",
        c10::toString(*type)));
  }
}

/// Checks that all ranks hold the same parameters, and gives them rank 0's values and buffers.
void make_alike(const torch::nn::Module& module, const std::vector<detail::UnitContents>& units,
                const detail::Sharing& sharing) {
  std::vector<at::Tensor> states;
  for (const auto& unit : units) {
    for (const auto& [name, tensor] : unit.parameters) states.push_back(tensor.detach());
  }
  for (const auto& group : {sharing.group, sharing.replicas}) {
    if (group && group->getSize() > 1) {
      c10d::verify_params_across_processes(group, states, std::nullopt);
    }
  }
  for (const auto& buffer : module.buffers()) states.push_back(buffer);
  detail::give_first_ranks(std::move(states), sharing);
}

c10::Device device_of(const std::vector<detail::UnitContents>& units) {
  for (const auto& unit : units) {
    if (!unit.parameters.empty()) return unit.parameters[0].second.device();
  }
  throw Error("FullyShardedDataParallel: the module has no parameters, so there is nothing to do.");
}

/// One process, which computes with what it stores: then there is nothing to share.
bool is_alone(const detail::Sharing& sharing, const std::vector<detail::UnitContents>& units) {
  if (sharing.ranks() * sharing.copies() > 1) return false;
  for (const auto& unit : units) {
    for (const auto& [name, tensor] : unit.parameters) {
      if (sharing.compute_type(tensor.scalar_type()) != tensor.scalar_type()) return false;
    }
  }
  return true;
}

}  // namespace

struct FullyShardedDataParallelBase::State {
  detail::Sharing sharing;
  std::shared_ptr<detail::Units> units;  // null in a group of one rank
  std::unordered_map<const c10::TensorImpl*, const detail::ShardedParameter*> by_shard;
  bool broadcasts_buffers = true;
  bool buffers_are_due = true;  // as DistributedDataParallel has it
};

FullyShardedDataParallelBase::FullyShardedDataParallelBase(
    std::shared_ptr<torch::nn::Module> module, const FullyShardedDataParallelOptions& options)
    : torch::nn::Module("FullyShardedDataParallel"),
      wrapped_(std::move(module)),
      state_(std::make_unique<State>()) {
  auto& state = *state_;
  check_options(options);
  state.sharing = detail::make_sharing(options);
  state.broadcasts_buffers = options.broadcast_buffers;
  auto contents = detail::unit_contents(wrapped_, options.units);
  const auto device = device_of(contents);
  std::unordered_map<const c10::TensorImpl*, at::Tensor> shards;
  if (is_alone(state.sharing, contents)) {
    for (const auto& parameter : wrapped_->parameters()) {
      shards.emplace(parameter.unsafeGetTensorImpl(), parameter);
    }
  } else {
    detail::add_streams(state.sharing, device);
    make_alike(*wrapped_, contents, state.sharing);
    state.units = std::make_shared<detail::Units>(std::move(contents), state.sharing, options);
    state.units->follow_blocks();
    for (const auto& unit : state.units->all()) {
      for (const auto& parameter : unit->parameters()) {
        shards.emplace(parameter.whole().unsafeGetTensorImpl(), parameter.shard());
        state.by_shard.emplace(parameter.shard().unsafeGetTensorImpl(), &parameter);
      }
    }
  }
  detail::grow_shard_tree(*this, *wrapped_, [&](const at::Tensor& whole) {
    return shards.at(whole.unsafeGetTensorImpl());
  });
  torch::nn::Module::train(wrapped_->is_training());
}

FullyShardedDataParallelBase::~FullyShardedDataParallelBase() = default;

WholeParameters FullyShardedDataParallelBase::summon_full_params() {
  return WholeParameters(state_->units);
}

void FullyShardedDataParallelBase::unshard() {
  if (state_->units) state_->units->start_gathers();
}

void FullyShardedDataParallelBase::reshard() {
  if (state_->units) state_->units->free_all();
}

at::Tensor FullyShardedDataParallelBase::clip_grad_norm_(double max_norm) {
  return distributed_utils::clip_grad_norm_(parameters(), max_norm, state_->sharing.group);
}

void FullyShardedDataParallelBase::zero_grad(bool set_to_none) {
  torch::nn::Module::zero_grad(set_to_none);
  if (!state_->units) return;
  for (const auto& unit : state_->units->all()) {
    for (auto& parameter : unit->parameters()) parameter.drop_gradient();
  }
}

void FullyShardedDataParallelBase::train(bool on) {
  torch::nn::Module::train(on);
  wrapped_->train(on);
}

namespace {
[[noreturn]] void fail_to_move() {
  throw Error(
      "FullyShardedDataParallel: to() would change shards and not the model. Fix: call to() of the "
      "module before it is wrapped.");
}
}  // namespace

void FullyShardedDataParallelBase::to(torch::Device, torch::Dtype, bool) { fail_to_move(); }
void FullyShardedDataParallelBase::to(torch::Dtype, bool) { fail_to_move(); }
void FullyShardedDataParallelBase::to(torch::Device, bool) { fail_to_move(); }

std::vector<Placement> FullyShardedDataParallelBase::placements() const {
  std::vector<Placement> result;
  for (const auto& item : named_parameters()) {
    const auto& shard = item.value();
    Placement piece = {.name = item.key(),
                       .tensor = shard,
                       .global_shape = shard.sizes().vec(),
                       .offset = std::vector<int64_t>(shard.dim(), 0),
                       .replicated = state_->sharing.holds_all()};
    const auto found = state_->by_shard.find(shard.unsafeGetTensorImpl());
    if (found != state_->by_shard.end()) {
      piece.global_shape = found->second->whole().sizes().vec();
      piece.offset[0] = found->second->first_row();
    }
    result.push_back(std::move(piece));
  }
  for (const auto& item : named_buffers()) {
    result.push_back({.name = item.key(),
                      .tensor = item.value(),
                      .global_shape = item.value().sizes().vec(),
                      .offset = std::vector<int64_t>(item.value().dim(), 0)});
  }
  return result;
}

void FullyShardedDataParallelBase::broadcast_buffers() {
  if (state_->broadcasts_buffers && state_->buffers_are_due) {
    detail::give_first_ranks(wrapped_->buffers(), state_->sharing);
  }
  state_->buffers_are_due = synchronizes_;
}

FullyShardedDataParallelBase::ForwardPass::ForwardPass(FullyShardedDataParallelBase& model)
    : model_(model) {
  const auto& units = model.state_->units;
  is_active_ = units && units->is_active();
  if (!is_active_) return;
  if (torch::GradMode::is_enabled()) model.broadcast_buffers();
  units->begin_forward(model.synchronizes_);
}

FullyShardedDataParallelBase::ForwardPass::~ForwardPass() {
  if (is_active_) model_.state_->units->leave_forward();
}

bool FullyShardedDataParallelBase::ForwardPass::needs_outputs() const {
  return model_.state_->units && torch::GradMode::is_enabled();
}

void FullyShardedDataParallelBase::ForwardPass::end(const std::vector<torch::Tensor>& outputs) {
  const auto& units = model_.state_->units;
  if (!units) return;
  units->end_forward(outputs);
  if (!torch::GradMode::is_enabled() || !model_.synchronizes_) return;
  if (Observer* const watching = observer()) watching->forward_ended();
}

WholeParameters::WholeParameters(std::shared_ptr<detail::Units> units) : units_(std::move(units)) {
  if (units_) units_->begin_whole();
}

WholeParameters::~WholeParameters() {
  if (units_) units_->end_whole();
}

namespace detail {
void fail_unknown_fsdp_output() {
  throw Error(
      "FullyShardedDataParallel: it must look into what forward returned, to know when backward() "
      "begins. Fix: overload collect_tensors for its type, or return tensors, vectors, maps, pairs "
      "or tuples.");
}
}  // namespace detail

}  // namespace distributed_utils
