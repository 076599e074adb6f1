// The seams: what every task is made to do passes here and is recorded, if this process records.
#include "tasks/task.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "evidence.hpp"
#include "fetched.hpp"
#include "graph/graph.hpp"
#include "instrumentation/recording.hpp"
#include "phases.hpp"

namespace tasks {

namespace recording = instrumentation::recording;

Dataset::Dataset(Split split, std::shared_ptr<const Source> source)
    : split_(split), source_(std::move(source)) {}

Batch Dataset::get_batch(c10::ArrayRef<size_t> indices) {
  phases::fetches(split_);
  const auto samples =
      recording::enabled() ? evidence::samples_of(split_, indices) : evidence::Payload();
  if (recording::enabled()) recording::record(instrumentation::Kind::fetch, samples);
  for (const auto index : indices) {
    TORCH_CHECK_INDEX(index < source_->size(), "sample ", index, " of a split with ",
                      source_->size(), " samples");
  }
  auto batch = source_->fetch(indices);
  if (recording::enabled()) remember_fetched(batch, samples);
  evidence::fetched(split_, source_->size(), indices, batch);
  return batch;
}

std::optional<size_t> Dataset::size() const { return source_->size(); }

torch::Tensor Model::forward(const Input& input) {
  evidence::forward_begins(*this, input);
  return compute(input);
}

namespace {

// The type of tensors that are made without one.
class DefaultType {
 public:
  explicit DefaultType(torch::Dtype type) : before_(torch::get_default_dtype()) {
    torch::set_default_dtype(c10::scalarTypeToTypeMeta(type));
  }
  ~DefaultType() { torch::set_default_dtype(before_); }
  DefaultType(const DefaultType&) = delete;
  DefaultType& operator=(const DefaultType&) = delete;

 private:
  caffe2::TypeMeta before_;
};

// As Python's Module.to(dtype); LibTorch's converts counts as well.
void convert_floating_point(Model& model, torch::Dtype type) {
  const torch::NoGradGuard no_grad;
  const auto convert = [&](torch::Tensor& tensor) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(type));
  };
  for (auto& parameter : model.parameters()) convert(parameter);
  for (auto& buffer : model.buffers()) convert(buffer);
}

}  // namespace

// Drawn in the type in which it trains: in fp64 53 random bits each, where 24 would make some
// elements equal.
std::shared_ptr<Model> Task::make_model() const {
  graph::leave_default_stream();
  evidence::model_begins();
  const DefaultType made_in(precision_);
  auto model = new_model();
  convert_floating_point(*model, precision_);
  evidence::tell_apart(*model);
  evidence::begins(*this);
  evidence::model_made(model);
  return model;
}

std::unique_ptr<torch::optim::Optimizer> Task::make_optimizer(
    std::vector<torch::Tensor> parameters, const OptimizerOptions& options) const {
  auto optimizer = new_optimizer(std::move(parameters));
  for (auto& group : optimizer->param_groups()) {
    auto& own = group.options();
    own.set_lr(own.get_lr() * options.learning_rate_factor);
  }
  return optimizer;
}

std::unique_ptr<Schedule> Task::make_schedule(torch::optim::Optimizer& optimizer,
                                              int64_t total_steps) const {
  return std::make_unique<Schedule>(optimizer, schedule(total_steps));
}

Schedule::Factor Task::schedule(int64_t /*total_steps*/) const { return {}; }

Loss Task::loss(const torch::Tensor& output, const Target& target) const {
  auto loss = compute_loss(output, target);
  loss.count_on_device = target.count_on_device();
  if (const auto count = static_cast<int64_t>(metrics().size()); count > 0) {
    loss.metrics = torch::GradMode::is_enabled()
                       ? at::zeros({count, 2}, loss.sum.options().dtype(torch::kDouble))
                       : compute_metrics(output, target);
  }
  evidence::loss_computed(loss, target);
  if (!torch::GradMode::is_enabled()) phases::evaluated(loss, metrics());
  return loss;
}

torch::Tensor Task::compute_metrics(const torch::Tensor& /*output*/,
                                    const Target& /*target*/) const {
  throw std::logic_error("a task that names metrics must compute them");
}

Dataset Task::dataset(std::string_view split) const {
  const auto names = splits();
  const auto found = std::ranges::find(names, split);
  if (found == names.end()) {
    throw Error(
        fmt::format("the task has no split '{}'; it has: {}", split, fmt::join(names, ", ")));
  }
  evidence::begins(*this);
  return {static_cast<Split>(found - names.begin()), new_source(split)};
}

torch::Tensor Task::no_totals(torch::Device device) const {
  const auto entries = static_cast<int64_t>(2 + 2 * metrics().size());
  return at::zeros({entries}, at::TensorOptions(torch::kDouble).device(device));
}

std::vector<std::string> Task::metric_names() const {
  std::vector<std::string> names;
  for (const auto& metric : metrics()) names.push_back(metric.name);
  return names;
}

Score Task::score(const torch::Tensor& totals) const {
  const auto host = totals.detach().to(torch::kCPU, torch::kDouble).contiguous();
  phases::evaluation_ends();  // the device has been waited for
  const double* values = host.const_data_ptr<double>();
  std::vector<std::pair<std::string, double>> named;
  for (const auto& metric : metrics()) {
    const double* own = values + 2 * (1 + named.size());
    const double ratio = own[0] / own[1];
    named.emplace_back(metric.name, metric.value == Metric::Of::ratio ? ratio : std::sqrt(ratio));
  }
  return Score(values[0] / values[1], std::move(named));
}

std::string Task::format(const Score& score) const {
  return fmt::format("{:#.{}g}", double(score), precision_ == torch::kFloat64 ? 15 : 6);
}

std::string Task::describe(const Score& score) const {
  std::string text = in_words(score);
  for (const auto& [name, value] : score.metrics()) {
    if (!std::isnan(value)) text += fmt::format(", {} {:.3g}", name, value);
  }
  return text;
}

}  // namespace tasks
