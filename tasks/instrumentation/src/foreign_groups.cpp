// What a program makes alone does not pass through the wrapping backend. Torch's profiling hook
// sees it nevertheless: a ProcessGroup's calls are operators c10d::*, and a bare ProcessGroupGloo
// announces gloo:*.
#include "foreign_groups.hpp"

#include <ATen/record_function.h>

#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "calls.hpp"
#include "products.hpp"
#include "recording_backend.hpp"

namespace instrumentation {
namespace {

using c10d::OpType;
using c10d::ProcessGroup;

constexpr std::string_view kOperators = "c10d::";
constexpr std::string_view kGloo = "gloo:";

struct Operator {
  std::string_view name;
  OpType type;
  size_t tensors;  // which argument holds what the wrapping backend would count
  bool root = false;
};

constexpr Operator kTable[] = {
    {"broadcast_", OpType::BROADCAST, 0, true},
    {"allreduce_", OpType::ALLREDUCE, 0},
    {"allreduce_coalesced_", OpType::ALLREDUCE_COALESCED, 0},
    {"reduce_", OpType::REDUCE, 0, true},
    {"allgather_", OpType::ALLGATHER, 1},
    {"_allgather_base_", OpType::_ALLGATHER_BASE, 1},
    {"allgather_coalesced_", OpType::ALLGATHER_COALESCED, 1},
    {"allgather_into_tensor_coalesced_", OpType::ALLGATHER_COALESCED, 1},
    {"gather_", OpType::GATHER, 1, true},
    {"scatter_", OpType::SCATTER, 0, true},
    {"reduce_scatter_", OpType::REDUCE_SCATTER, 0},
    {"_reduce_scatter_base_", OpType::_REDUCE_SCATTER_BASE, 1},
    {"reduce_scatter_tensor_coalesced_", OpType::_REDUCE_SCATTER_BASE, 1},
    {"alltoall_", OpType::ALLTOALL, 1},
    {"alltoall_base_", OpType::ALLTOALL_BASE, 1},
    {"send", OpType::SEND, 0, true},
    {"recv_", OpType::RECV, 0, true},
    {"recv_any_source_", OpType::RECVANYSOURCE, 0},
    {"barrier", OpType::BARRIER, SIZE_MAX},
    {"monitored_barrier_", OpType::BARRIER, SIZE_MAX},
};

// A bare Gloo backend speaks from a thread of its own, when it begins, and says neither op nor
// root.
constexpr Operator kGlooTable[] = {
    {"all_reduce", OpType::ALLREDUCE, 0},
    {"sparse_all_reduce", OpType::_ALLREDUCE_SPARSE, 0},
    {"broadcast", OpType::BROADCAST, 0},
    {"reduce", OpType::REDUCE, 0},
    {"all_gather", OpType::ALLGATHER, 0},
    {"gather", OpType::GATHER, 0},
    {"scatter", OpType::SCATTER, 0},
    {"all_to_all", OpType::ALLTOALL_BASE, 0},
    {"barrier", OpType::BARRIER, SIZE_MAX},
    {"send", OpType::SEND, 0},
    {"recv", OpType::RECV, 0},
    {"recvAnySource", OpType::RECVANYSOURCE, 0},
};

const Operator* find(std::span<const Operator> table, std::string_view name) {
  for (const auto& op : table) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

// From the call to its return (c10d::*) or to its completion (gloo:*).
struct Followed : at::ObserverContext {
  CallId call;
  bool on_gpu = false;
  std::optional<at::DisableRecordFunctionGuard>
      unannounced;  // c10d::*: says it once, not gloo:* too
};

template <class T>
c10::intrusive_ptr<T> custom(const c10::IValue& value) {
  if (!value.isCustomClass()) return nullptr;
  return *value.type() == *c10::getCustomClassType<c10::intrusive_ptr<T>>()
             ? value.toCustomClass<T>()
             : nullptr;
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  return {};
}

std::shared_ptr<RecordedGroup> number_of(const c10::intrusive_ptr<ProcessGroup>& group) {
  struct Known {
    c10::weak_intrusive_ptr<ProcessGroup> alive;  // an address may be used again
    std::shared_ptr<RecordedGroup> number;
  };
  static std::mutex mutex;
  static auto* const known = new std::map<ProcessGroup*, Known>;  // leaked: used until the very end
  const std::lock_guard lock(mutex);
  const auto found = known->find(group.get());
  if (found != known->end() && found->second.alive.lock()) return found->second.number;
  auto number = record_group(group->getGroupName(), group->getRank(), group->getSize(), {});
  known->insert_or_assign(group.get(), Known{c10::weak_intrusive_ptr<ProcessGroup>(group), number});
  return number;
}

bool passes_the_wrapper(ProcessGroup& group, c10::DeviceType device) {
  try {
    return is_recorded(*group.getBackend(device));
  } catch (const c10::Error&) {  // no backend for the device: the call is about to fail
    return false;
  }
}

std::unique_ptr<Followed> follow(RecordedGroup& group, const RecordedCall& call,
                                 const std::vector<at::Tensor>& tensors, bool on_gpu) {
  auto followed = std::make_unique<Followed>();
  followed->call = record_issued(group, call, tensors, on_gpu);
  followed->on_gpu = on_gpu;
  return followed;
}

std::unique_ptr<at::ObserverContext> begin_operator(const Operator& op,
                                                    c10::ArrayRef<const c10::IValue> inputs) {
  RecordedCall call{.type = op.type};
  c10::intrusive_ptr<ProcessGroup> group;
  auto device = c10::kCPU;
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& input = inputs[i];
    const auto held = tensors_of(input);
    if (!held.empty() && !group) device = held.front().device().type();
    if (i == op.tensors) tensors = held;
    if (const auto found = custom<ProcessGroup>(input)) group = found;
    if (const auto reduce = custom<c10d::ReduceOp>(input)) call.op = reduce->op_;
    if (!op.root || !group || !input.isInt()) continue;
    if (call.root < 0) {
      call.root = input.toInt();
    } else if (op.type == OpType::SEND || op.type == OpType::RECV) {
      call.tag = static_cast<int>(input.toInt());
    }
  }
  if (!group || passes_the_wrapper(*group, device)) return nullptr;
  const bool on_gpu =
      device == c10::kCUDA && runs_on_gpu(group->getBackend(device)->getBackendName());
  auto followed = follow(*number_of(group), call, tensors, on_gpu);
  followed->unannounced.emplace();
  return followed;
}

std::unique_ptr<at::ObserverContext> begin_gloo(const Operator& op,
                                                c10::ArrayRef<const c10::IValue> inputs) {
  static const auto group = record_group("gloo", 0, 0, {});  // which backend, it does not say
  std::vector<at::Tensor> tensors;
  for (const auto& input : inputs) {
    if (op.tensors == 0 && input.isTensor()) tensors.push_back(input.toTensor());
  }
  return follow(*group, {.type = op.type}, tensors, /*on_gpu=*/false);
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name.starts_with(kOperators)) {
    const auto* op = find(kTable, name.substr(kOperators.size()));
    return op ? begin_operator(*op, function.inputs()) : nullptr;
  }
  if (name.starts_with(kGloo)) {
    const auto* op = find(kGlooTable, name.substr(kGloo.size()));
    return op ? begin_gloo(*op, function.inputs()) : nullptr;
  }
  count_product(name);
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* followed = dynamic_cast<Followed*>(context);
  if (!followed) return;
  if (!followed->unannounced) {
    record_completed(followed->call, false);
    return;
  }
  followed->unannounced.reset();
  for (const auto& output : function.outputs()) {
    if (const auto work = custom<c10d::Work>(output)) {
      record_end_of(work, followed->call, followed->on_gpu);
    }
  }
}

}  // namespace

void observe_foreign_groups() {
  at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace instrumentation
