#include "evidence.hpp"

#include <fmt/ranges.h>

#include <mutex>

#include "instrumentation/recording.hpp"

namespace tasks::evidence {

using instrumentation::Kind;
using instrumentation::NamedTensor;
namespace recording = instrumentation::recording;

namespace {

template <class Number>
void append(Payload& payload, Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  payload.insert(payload.end(), bytes.begin(), bytes.end());
}

// The last model made, and what its buffers were when they were recorded last: torch counts how
// often a tensor was written to.
struct Made {
  std::weak_ptr<Model> model;
  std::vector<int64_t> versions;
};

Made& last_made() {
  static auto* const made = new Made;  // leaked: seams are passed until the very end
  return *made;
}

std::vector<int64_t> versions_of(const Model& model) {
  std::vector<int64_t> versions;
  for (const auto& buffer : model.buffers()) versions.push_back(buffer._version());
  return versions;
}

void add_buffers(const Model& model, std::vector<NamedTensor>& to) {
  for (const auto& item : model.named_buffers()) {
    to.push_back({.name = item.key(), .tensor = item.value(), .buffer = true});
  }
}

// If they have changed.
void record_buffers() {
  auto& made = last_made();
  const auto model = made.model.lock();
  if (!model) return;
  auto versions = versions_of(*model);
  if (versions == made.versions) return;
  made.versions = std::move(versions);
  std::vector<NamedTensor> buffers;
  add_buffers(*model, buffers);
  recording::record(Kind::buffers, describe_tensors(buffers, /*with_values=*/true));
}

}  // namespace

Payload samples_of(Split split, c10::ArrayRef<size_t> indices) {
  Payload payload;
  append(payload, static_cast<uint64_t>(split));
  for (const auto index : indices) append(payload, static_cast<uint64_t>(index));
  return payload;
}

void begins(const Task& task) {
  if (!recording::enabled()) return;
  static std::once_flag once;
  std::call_once(once, [&] {
    recording::record_text(Kind::splits, fmt::format("{}", fmt::join(task.splits(), "\n")));
    recording::record_text(Kind::metrics, fmt::format("{}", fmt::join(task.metric_names(), "\n")));
  });
}

void model_made(const std::shared_ptr<Model>& model) {
  if (!recording::enabled()) return;
  last_made() = {.model = model, .versions = versions_of(*model)};
  std::vector<NamedTensor> tensors;
  for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value()});
  add_buffers(*model, tensors);
  recording::record(Kind::model, describe_tensors(tensors, /*with_values=*/true));
}

void optimizer_made(const std::vector<torch::Tensor>& parameters) {
  if (!recording::enabled()) return;
  const auto model = last_made().model.lock();
  std::vector<NamedTensor> named;
  for (const auto& parameter : parameters) {
    std::string name;  // none for a parameter of something else
    if (model) {
      for (const auto& item : model->named_parameters()) {
        if (item.value().is_same(parameter)) name = item.key();
      }
    }
    named.push_back({std::move(name), parameter});
  }
  recording::record(Kind::parameters, describe_tensors(named, /*with_values=*/false));
}

void forward_begins(const Model& model) {
  if (!recording::enabled()) return;
  recording::record_one(Kind::forward, instrumentation::ForwardRecord{
                                           .training = model.is_training() ? 1U : 0U,
                                           .gradients = torch::GradMode::is_enabled() ? 1U : 0U});
}

void loss_computed(const Loss& loss) {
  if (!recording::enabled()) return;
  Payload payload;
  append(payload,
         instrumentation::LossRecord{.sum = loss.sum.item<double>(),
                                     .count = static_cast<double>(loss.count),
                                     .gradients = torch::GradMode::is_enabled() ? 1.0 : 0.0});
  if (loss.metrics.defined()) {
    const auto host = loss.metrics.detach().to(torch::kCPU, torch::kDouble).contiguous();
    const auto* values = host.const_data_ptr<double>();
    for (int64_t i = 0; i < host.numel(); ++i) append(payload, values[i]);
  }
  recording::record(Kind::loss, payload);
}

void step_begins(const torch::optim::Optimizer& optimizer) {
  if (!recording::enabled()) return;
  std::vector<at::Tensor> parameters;
  Payload rates;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
    append(rates, group.options().get_lr());
  }
  recording::record(Kind::learning_rates, rates);
  record_buffers();
  recording::record(Kind::values, instrumentation::values_of(parameters));
  recording::record(Kind::gradients, instrumentation::gradients_of(parameters));
}

void evaluation_begins() {
  if (recording::enabled()) record_buffers();
}

void reported(const Score& score) {
  if (!recording::enabled()) return;
  Payload payload;
  append(payload, static_cast<double>(score));
  for (const auto& [name, value] : score.metrics()) append(payload, value);
  recording::record(Kind::reported, payload);
}

}  // namespace tasks::evidence
