#include "oracle.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace replay {

using checker::ParameterSeen;
using checker::Split;

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

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

Oracle::Oracle(const tasks::Task& task, const std::vector<ParameterSeen>& parameters)
    : task_(task),
      model_(task.make_model()),
      parameters_(ordered_parameters(*model_, parameters)) {}

bool Oracle::set(const Flat& values) { return assign(parameters_, values); }

Oracle::Result Oracle::compute(Split split, const std::vector<uint64_t>& ids, bool with_gradients) {
  const torch::AutoGradMode mode(with_gradients);
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

Stepper::Stepper(const tasks::Task& task, const std::vector<ParameterSeen>& parameters)
    : model_(task.make_model()),
      parameters_(ordered_parameters(*model_, parameters)),
      optimizer_(task.make_optimizer(parameters_)) {}

Flat Stepper::step(const Flat& values, const Flat& gradients) {
  if (values.size() != gradients.size() || !assign(parameters_, values)) return {};
  std::vector<at::Tensor> slots;
  for (auto& parameter : parameters_) {
    parameter.mutable_grad() = at::zeros_like(parameter);
    slots.push_back(parameter.grad());
  }
  assign(slots, gradients);
  optimizer_->step();
  return flat(parameters_);
}

double deviation(const Flat& got, const Flat& wanted) {
  if (got.size() != wanted.size() || got.empty()) return kInfinite;
  double worst = 0, scale = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - wanted[i]);
    if (!(difference <= worst)) worst = difference;  // also what is no number
    scale = std::max(scale, std::abs(wanted[i]));
  }
  if (worst == 0) return 0;
  return scale > 0 ? worst / scale : kInfinite;
}

std::vector<at::Tensor> ordered_parameters(tasks::Model& model,
                                           const std::vector<ParameterSeen>& parameters) {
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
