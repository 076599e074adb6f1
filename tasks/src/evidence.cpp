#include "evidence.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <mutex>

#include "distributed_utils/launch.hpp"
#include "fingerprints.hpp"
#include "instrumentation/fnv1a.hpp"
#include "instrumentation/memory.hpp"
#include "instrumentation/recording.hpp"
#include "tasks/keyed_random.hpp"

namespace tasks::evidence {

using instrumentation::Kind;
using instrumentation::kUnknownPlace;
using instrumentation::NamedTensor;
namespace recording = instrumentation::recording;

namespace {

template <class Number>
void append(Payload& payload, const Number& number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  payload.insert(payload.end(), bytes.begin(), bytes.end());
}

// A model made, and what its buffers were when they were recorded last. Torch counts how often it
// writes to a tensor, but collectives write beside it: so a hash of the bytes tells.
struct Made {
  std::weak_ptr<Model> model;
  uint64_t buffers = 0;
};

std::vector<Made>& all_made() {
  static auto* const made = new std::vector<Made>;  // leaked: seams are passed until the very end
  return *made;
}

uint64_t hash_of_buffers(const Model& model) {
  uint64_t hash = instrumentation::kFnvBasis;
  for (const auto& buffer : model.buffers()) {
    const auto host = buffer.detach().to(torch::kCPU).contiguous();
    const std::string_view bytes{static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
    hash = instrumentation::fnv1a_step(hash, instrumentation::fnv1a(bytes));
  }
  return hash;
}

void add_buffers(const Model& model, std::vector<NamedTensor>& to) {
  for (const auto& item : model.named_buffers()) {
    to.push_back({.name = item.key(), .tensor = item.value(), .buffer = true});
  }
}

// If they have changed.
void record_buffers(Made& made) {
  const auto model = made.model.lock();
  if (!model) return;
  const auto hash = hash_of_buffers(*model);
  if (hash == made.buffers) return;
  made.buffers = hash;
  std::vector<NamedTensor> buffers;
  add_buffers(*model, buffers);
  recording::record(Kind::buffers, describe_tensors(buffers, /*with_values=*/true));
}

// What dropout draws follows from it, so that a replay can draw the same.
void record_generator() {
  static at::Tensor* const last = new at::Tensor;
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  const auto state = generator.get_state();
  if (last->defined() && at::equal(*last, state)) return;
  *last = state;
  const auto* bytes = static_cast<const std::byte*>(state.const_data_ptr());
  recording::record(Kind::generator, {bytes, state.nbytes()});
}

// The place of a parameter among a model's.
uint64_t place_of(const torch::Tensor& parameter, const std::vector<torch::Tensor>& all) {
  for (size_t place = 0; place < all.size(); ++place) {
    if (all[place].is_same(parameter)) return place;
  }
  return kUnknownPlace;
}

// The number of the task's model that holds the first of these; kUnknownPlace if none does.
uint64_t model_of(const std::vector<torch::Tensor>& parameters) {
  if (parameters.empty()) return kUnknownPlace;
  for (size_t number = all_made().size(); number-- > 0;) {
    const auto model = all_made()[number].model.lock();
    if (model && place_of(parameters.front(), model->parameters()) != kUnknownPlace) return number;
  }
  return kUnknownPlace;
}

void record_all(Kind kind, const std::vector<uint64_t>& numbers) {
  recording::record(kind, std::as_bytes(std::span(numbers)));
}

// Tensors of an optimizer that are not parameters of a model, for example pieces.
void record_pieces(const std::vector<torch::Tensor>& pieces) {
  std::vector<NamedTensor> tensors;
  for (const auto& piece : pieces) tensors.push_back({.name = "", .tensor = piece});
  recording::record(Kind::pieces, describe_tensors(tensors, /*with_values=*/false));
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

void prepares(std::string_view name, bool found) {
  if (!recording::enabled()) return;
  Payload payload;
  append(payload, uint64_t{found});
  const auto text = std::as_bytes(std::span(name));
  payload.insert(payload.end(), text.begin(), text.end());
  recording::record(Kind::prepared, payload);
}

void run_planned(int64_t world_size, int64_t total_steps) {
  if (!recording::enabled()) return;
  recording::record_one(Kind::progress, instrumentation::ProgressRecord{
                                            .world_size = static_cast<uint64_t>(world_size),
                                            .total_steps = static_cast<uint64_t>(total_steps)});
}

void model_begins() {
  if (recording::enabled()) instrumentation::memory::record(instrumentation::Moment::model_begins);
}

void tell_apart(Model& model) {
  if (!recording::enabled()) return;
  if (!distributed_utils::process_environment("WORLDSIZE_FINGERPRINTS")) return;
  const torch::NoGradGuard no_grad;
  constexpr int64_t kFewest = 2;
  uint64_t number = 0;
  for (auto& parameter : model.parameters()) {
    ++number;
    if (parameter.scalar_type() != torch::kFloat64 || parameter.numel() < kFewest) continue;
    if (!parameter.eq(parameter.flatten()[0]).all().item<bool>()) continue;
    KeyedRandom random(number, 0, 0);
    std::vector<double> parts;
    for (int64_t i = 0; i < parameter.numel(); ++i) parts.push_back(1e-3 * random.normal());
    parameter += at::tensor(parts, at::kDouble).view(parameter.sizes());
  }
}

void model_made(const std::shared_ptr<Model>& model) {
  if (!recording::enabled()) return;
  all_made().push_back({.model = model, .buffers = hash_of_buffers(*model)});
  std::vector<NamedTensor> tensors;
  for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value()});
  add_buffers(*model, tensors);
  recording::record(Kind::model, describe_tensors(tensors, /*with_values=*/true));
}

void fetched(Split split, size_t size, c10::ArrayRef<size_t> indices, const Batch& batch) {
  if (!recording::enabled()) return;
  const auto inputs = fingerprints_of(batch.input), targets = fingerprints_of(batch.target);
  if (inputs.size() != indices.size() || targets.size() != indices.size()) return;
  Payload payload;
  append(payload, instrumentation::SamplesRecord{.split = static_cast<uint64_t>(split),
                                                 .size = static_cast<uint64_t>(size)});
  for (size_t i = 0; i < indices.size(); ++i) {
    append(payload, instrumentation::SampleRecord{.index = static_cast<uint64_t>(indices[i]),
                                                  .input = inputs[i],
                                                  .target = targets[i]});
  }
  recording::record(Kind::samples, payload);
}

void forward_begins(const Model& model, const Input& input) {
  if (!recording::enabled()) return;
  if (model.is_training()) record_generator();
  Payload payload;
  append(payload,
         instrumentation::ForwardRecord{.training = model.is_training() ? 1U : 0U,
                                        .gradients = torch::GradMode::is_enabled() ? 1U : 0U});
  for (const auto fingerprint : fingerprints_of(input)) append(payload, fingerprint);
  recording::record(Kind::forward, payload);
}

void loss_computed(const Loss& loss, const Target& target) {
  if (!recording::enabled()) return;
  static std::atomic<uint64_t> losses{0};
  const uint64_t number = losses++;
  record_all(Kind::targets, fingerprints_of(target));
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
  if (torch::GradMode::is_enabled()) instrumentation::memory::record(instrumentation::Moment::loss);
  if (!loss.sum.requires_grad()) return;
  loss.sum.register_hook([number](const torch::Tensor& /*gradient*/) {
    recording::record_one(Kind::backward, number);
    torch::autograd::Engine::get_default_engine().queue_callback(
        [number] { recording::record_one(Kind::backward_ended, number); });
  });
}

void step_begins(const torch::optim::Optimizer& optimizer) {
  if (!recording::enabled()) return;
  instrumentation::memory::record(instrumentation::Moment::step_begins);
  std::vector<torch::Tensor> parameters;
  Payload rates;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
    append(rates, group.options().get_lr());
  }
  const uint64_t number = model_of(parameters);
  auto all = parameters;
  if (number != kUnknownPlace) all = all_made()[number].model.lock()->parameters();
  std::vector<uint64_t> stepping{number};
  for (const auto& parameter : parameters) {
    stepping.push_back(number == kUnknownPlace ? kUnknownPlace : place_of(parameter, all));
  }
  if (number == kUnknownPlace) record_pieces(all);
  record_all(Kind::stepping, stepping);
  recording::record(Kind::learning_rates, rates);
  if (number != kUnknownPlace) record_buffers(all_made()[number]);
  recording::record(Kind::values, instrumentation::values_of(all));
  recording::record(Kind::gradients, instrumentation::gradients_of(all));
}

void step_ends() {
  if (recording::enabled()) instrumentation::memory::record(instrumentation::Moment::step_ends);
}

void evaluation_begins() {
  if (!recording::enabled()) return;
  for (auto& made : all_made()) record_buffers(made);
}

void reported(const Score& score) {
  if (!recording::enabled()) return;
  Payload payload;
  append(payload, static_cast<double>(score));
  for (const auto& [name, value] : score.metrics()) append(payload, value);
  recording::record(Kind::reported, payload);
  instrumentation::memory::record(instrumentation::Moment::reported);
}

}  // namespace tasks::evidence
