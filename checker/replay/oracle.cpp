#include "oracle.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace replay {

using checker::Split;
using checker::TensorSeen;

namespace {

Flat gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.grad();
    gradients.push_back(gradient.defined() ? gradient : at::zeros_like(parameter));
  }
  return flat(gradients);
}

tasks::Dataset dataset_of(const tasks::Task& task, Split split) {
  return task.dataset(task.splits().at(static_cast<size_t>(split)));
}

bool assign(const std::vector<at::Tensor>& parameters, const Flat& values) {
  const torch::NoGradGuard no_grad;
  size_t from = 0;
  for (const auto& parameter : parameters) {
    const auto count = static_cast<size_t>(parameter.numel());
    if (values.size() - from < count) return false;
    parameter.copy_(
        at::from_blob(const_cast<double*>(values.data() + from), parameter.sizes(), at::kDouble));
    from += count;
  }
  return from == values.size();
}

void set_generator(std::string_view state) {
  if (state.empty()) return;
  const auto bytes = at::empty({static_cast<int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

void set_rates(torch::optim::Optimizer& optimizer, const Flat& rates) {
  auto& groups = optimizer.param_groups();
  for (size_t i = 0; i < std::min(groups.size(), rates.size()); ++i) {
    groups[i].options().set_lr(rates[i]);
  }
}

}  // namespace

Flat flat(const std::vector<at::Tensor>& tensors) {
  Flat all;
  for (const auto& tensor : tensors) {
    const auto host = tensor.detach().to(at::kCPU, at::kDouble).contiguous().view(-1);
    const double* first = host.const_data_ptr<double>();
    all.insert(all.end(), first, first + host.numel());
  }
  return all;
}

Oracle::Oracle(const tasks::Task& task, const std::vector<TensorSeen>& parameters)
    : task_(task),
      model_(task.make_model()),
      parameters_(ordered_parameters(*model_, parameters)) {}

bool Oracle::set(const Flat& values) { return assign(parameters_, values); }

void Oracle::set_buffers(const std::vector<TensorSeen>& buffers) {
  const torch::NoGradGuard no_grad;
  auto own = model_->named_buffers();
  for (const auto& buffer : buffers) {
    auto* found = own.find(buffer.name);
    if (!found || static_cast<size_t>(found->numel()) != buffer.values.size()) continue;
    found->copy_(
        at::from_blob(const_cast<double*>(buffer.values.data()), found->sizes(), at::kDouble));
  }
}

Oracle::Result Oracle::compute(Split split, const std::vector<uint64_t>& ids, bool with_gradients,
                               std::string_view generator) {
  const torch::AutoGradMode mode(with_gradients);
  set_generator(generator);
  with_gradients ? model_->train() : model_->eval();
  model_->zero_grad();
  auto dataset = dataset_of(task_, split);
  const std::vector<size_t> indices(ids.begin(), ids.end());
  const auto batch = dataset.get_batch(indices);
  const auto loss = task_.loss(model_->forward(batch.input), batch.target);
  Result result{
      .sum = loss.sum.item<double>(), .count = static_cast<double>(loss.count), .gradients = {}};
  if (with_gradients) {
    loss.mean().backward();
    result.gradients = gradients_of(parameters_);
  }
  return result;
}

double Oracle::mean_over(Split split) {
  const size_t size = *dataset_of(task_, split).size();
  double sum = 0, count = 0;
  for (size_t from = 0; from < size; from += 64) {
    std::vector<uint64_t> ids;
    for (size_t id = from; id < std::min(size, from + 64); ++id) ids.push_back(id);
    const auto part = compute(split, ids, false);
    sum += part.sum;
    count += part.count;
  }
  return sum / count;
}

size_t Oracle::size_of(Split split) const { return *dataset_of(task_, split).size(); }

std::vector<at::Tensor> loose_parameters(const std::vector<TensorSeen>& pieces) {
  std::vector<at::Tensor> parameters;
  for (const auto& piece : pieces) {
    const auto type = static_cast<at::ScalarType>(piece.scalar_type);
    parameters.push_back(at::zeros(piece.sizes, type).requires_grad_());
  }
  return parameters;
}

Stepper::Stepper(const tasks::Task& task, std::vector<at::Tensor> parameters, int64_t total_steps)
    : parameters_(std::move(parameters)),
      optimizer_(task.make_optimizer(parameters_)),
      schedule_(task.make_schedule(*optimizer_, total_steps)) {}

Flat Stepper::rates() const {
  Flat rates;
  for (const auto& group : optimizer_->param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

Flat Stepper::step(const checker::StepSeen& seen) {
  const auto& [values, gradients, rates, stepped, event] = seen;
  if (values.size() != gradients.size() || !assign(parameters_, values)) return {};
  std::vector<at::Tensor> slots;
  for (auto& parameter : parameters_) {
    parameter.mutable_grad() = at::zeros_like(parameter);
    slots.push_back(parameter.grad());
  }
  assign(slots, gradients);
  for (size_t i = 0; i < std::min(parameters_.size(), stepped.size()); ++i) {
    if (!stepped[i])
      parameters_[i].mutable_grad() = at::Tensor();  // the optimizer leaves it as it is
  }
  const Flat own = this->rates();
  set_rates(*optimizer_, rates);
  optimizer_->step();
  set_rates(*optimizer_, own);
  schedule_->step();
  return flat(parameters_);
}

std::vector<at::Tensor> ordered_parameters(tasks::Model& model,
                                           const std::vector<TensorSeen>& parameters) {
  const auto named = model.named_parameters();
  std::vector<at::Tensor> ordered;
  for (const auto& parameter : parameters) {
    const auto* found = named.find(parameter.name);
    if (!found || static_cast<uint64_t>(found->numel()) != parameter.elements) {
      throw tasks::Error("the optimizer holds a parameter '" + parameter.name +
                         "' that the task's model does not have");
    }
    ordered.push_back(*found);
  }
  return ordered;
}

}  // namespace replay
