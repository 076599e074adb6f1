#include "distributed_utils/optimizer_state.hpp"

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <charconv>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/pieces.hpp"
#include "checkpoint/restore.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/placement.hpp"

namespace distributed_utils {
namespace {

using torch::optim::Optimizer;
using ParameterState = std::unique_ptr<torch::optim::OptimizerParamState>;

/// One parameter's tensors by the name that Python gives them.
using Fields = std::map<std::string, at::Tensor>;

/// The optimizer's parameters, where they lie in the model that owns them.
std::vector<Placement> parameters_of(const Optimizer& optimizer, const torch::nn::Module& model) {
  std::unordered_map<const void*, Placement> known;
  for (auto& piece : placements(model)) {
    const auto* tensor = piece.tensor.unsafeGetTensorImpl();
    known.emplace(tensor, std::move(piece));
  }
  std::vector<Placement> result;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& tensor : group.params()) {
      const auto found = known.find(tensor.unsafeGetTensorImpl());
      if (found == known.end()) {
        throw Error(
            fmt::format("The optimizer has a parameter of shape {} that the model does not have. "
                        "Fix: pass the model that the optimizer was made for.",
                        c10::str(tensor.sizes())));
      }
      result.push_back(found->second);
    }
  }
  return result;
}

template <typename State>
Fields adam_fields(const State& state) {
  Fields fields = {{"step", at::scalar_tensor(state.step(), at::kLong)},
                   {"exp_avg", state.exp_avg()},
                   {"exp_avg_sq", state.exp_avg_sq()}};
  if (state.max_exp_avg_sq().defined()) fields["max_exp_avg_sq"] = state.max_exp_avg_sq();
  return fields;
}

Fields fields_of(const torch::optim::OptimizerParamState& state) {
  using namespace torch::optim;
  if (const auto* adamw = dynamic_cast<const AdamWParamState*>(&state)) return adam_fields(*adamw);
  if (const auto* adam = dynamic_cast<const AdamParamState*>(&state)) return adam_fields(*adam);
  if (const auto* sgd = dynamic_cast<const SGDParamState*>(&state)) {
    if (!sgd->momentum_buffer().defined()) return {};
    return {{"momentum_buffer", sgd->momentum_buffer()}};
  }
  throw Error(
      "Cannot save the optimizer's state: it is not an Adam, AdamW or SGD of torch::optim. Fix: "
      "use one of these, or a class derived from one.");
}

template <typename State>
ParameterState adam_state(const Fields& fields) {
  auto state = std::make_unique<State>();
  state->step(fields.at("step").item<int64_t>());
  state->exp_avg(fields.at("exp_avg"));
  state->exp_avg_sq(fields.at("exp_avg_sq"));
  if (fields.contains("max_exp_avg_sq")) state->max_exp_avg_sq(fields.at("max_exp_avg_sq"));
  return state;
}

/// A kind of optimizer: what its state must have, what it may have, and how to make it.
struct Kind {
  std::vector<std::string> required;
  std::vector<std::string> optional;
  ParameterState (*make)(const Fields& fields);
};

Kind kind_of(const Optimizer& optimizer) {
  using namespace torch::optim;
  const std::vector<std::string> adam = {"step", "exp_avg", "exp_avg_sq"};
  if (dynamic_cast<const AdamW*>(&optimizer)) {
    return {adam, {"max_exp_avg_sq"}, adam_state<AdamWParamState>};
  }
  if (dynamic_cast<const Adam*>(&optimizer)) {
    return {adam, {"max_exp_avg_sq"}, adam_state<AdamParamState>};
  }
  if (dynamic_cast<const SGD*>(&optimizer)) {
    return {{"momentum_buffer"}, {}, [](const Fields& fields) -> ParameterState {
              auto state = std::make_unique<SGDParamState>();
              state->momentum_buffer(fields.at("momentum_buffer"));
              return state;
            }};
  }
  return {{}, {}, nullptr};
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(
      fmt::format("The saved optimizer state does not fit: {}. Fix: resume with the optimizer, "
                  "model and configuration that saved it.",
                  what));
}

void check(const Kind& kind, const std::string& name, const Fields& fields) {
  size_t known = 0;
  for (const auto& field : kind.required) {
    if (!fields.contains(field)) refuse(fmt::format("'{}.{}' is not in it", field, name));
    ++known;
  }
  for (const auto& field : kind.optional) known += fields.count(field);
  if (known != fields.size()) {
    refuse(fmt::format("'{}' has values that this kind of optimizer does not keep", name));
  }
}

/// A value of the parameter's shape, type and device.
at::Tensor like(const at::Tensor& parameter, const at::Tensor& saved, const std::string& name) {
  if (saved.sizes() != parameter.sizes()) {
    refuse(fmt::format("'{}' has shape {}, the parameter's is {}", name, c10::str(saved.sizes()),
                       c10::str(parameter.sizes())));
  }
  at::Tensor result = at::empty_like(parameter.detach());
  result.copy_(saved);
  return result;
}

/// `from` by parameter; learning rates, by number, apart.
struct Sorted {
  std::map<std::string, Fields> parameters;
  std::map<size_t, double> learning_rates;
};

Sorted sorted(const StateDict& from) {
  Sorted result;
  for (const auto& [key, tensor] : from) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) refuse(fmt::format("'{}' is none of its names", key));
    const std::string field = key.substr(0, dot);
    const std::string name = key.substr(dot + 1);
    if (field != "lr") {
      result.parameters[name][field] = tensor;
      continue;
    }
    size_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    result.learning_rates[number] = tensor.item<double>();
  }
  return result;
}

}  // namespace

std::vector<Placement> detail::optimizer_placements(const Optimizer& optimizer,
                                                    const torch::nn::Module& model) {
  std::vector<Placement> result;
  for (const auto& parameter : parameters_of(optimizer, model)) {
    const auto found = optimizer.state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    for (const auto& [field, value] : fields_of(*found->second)) {
      Placement piece = parameter;
      piece.name = fmt::format("{}.{}", field, parameter.name);
      piece.tensor = value.detach();
      if (value.sizes() != parameter.tensor.sizes()) {  // a number of steps: of the whole parameter
        piece.global_shape = value.sizes().vec();
        piece.offset.assign(value.dim(), 0);
      }
      result.push_back(std::move(piece));
    }
  }
  size_t number = 0;
  for (const auto& group : optimizer.param_groups()) {
    result.push_back({.name = fmt::format("lr.{}", number++),
                      .tensor = at::scalar_tensor(group.options().get_lr(), at::kDouble)});
  }
  return result;
}

StateDict optimizer_state_dict(const Optimizer& optimizer, const torch::nn::Module& model) {
  StateDict result;
  for (const auto& piece : detail::optimizer_placements(optimizer, model)) {
    result.emplace(piece.name, piece.tensor);
  }
  return result;
}

std::function<void()> detail::prepare_load(Optimizer& optimizer, const torch::nn::Module& model,
                                           const StateDict& from) {
  Sorted saved = sorted(from);
  const Kind kind = kind_of(optimizer);
  const auto states = std::make_shared<std::vector<std::pair<void*, ParameterState>>>();
  for (const auto& piece : parameters_of(optimizer, model)) {
    const auto& name = piece.name;
    const auto& parameter = piece.tensor;
    const auto found = saved.parameters.find(name);
    if (found == saved.parameters.end()) continue;  // it never had a gradient
    if (kind.make == nullptr) refuse("it is of torch::optim's Adam, AdamW or SGD");
    check(kind, name, found->second);
    for (auto& [field, value] : found->second) {
      if (field != "step") value = like(parameter, value, field + "." + name);
    }
    states->emplace_back(parameter.unsafeGetTensorImpl(), kind.make(found->second));
    saved.parameters.erase(found);
  }
  if (!saved.parameters.empty()) {
    refuse(fmt::format("it has '{}', which is not a parameter of the optimizer",
                       saved.parameters.begin()->first));
  }
  const size_t groups = optimizer.param_groups().size();
  if (saved.learning_rates.size() != groups) {
    refuse(fmt::format("it has {} parameter groups, the optimizer has {}",
                       saved.learning_rates.size(), groups));
  }
  return [&optimizer, states, rates = std::move(saved.learning_rates)] {
    optimizer.state().clear();
    for (auto& [key, state] : *states) optimizer.state()[key] = std::move(state);
    for (const auto& [number, rate] : rates) {
      optimizer.param_groups().at(number).options().set_lr(rate);
    }
  };
}

void load_optimizer_state_dict(Optimizer& optimizer, const torch::nn::Module& model,
                               const StateDict& state) {
  detail::prepare_load(optimizer, model, state)();
}

}  // namespace distributed_utils
