// The seams: what every task is made to do passes here and is recorded, if this process records.
#include "tasks/task.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "distributed_utils/recording.hpp"
#include "evidence.hpp"
#include "fetched.hpp"
#include "phases.hpp"

namespace tasks {

namespace recording = distributed_utils::recording;
using recording::Kind;

Dataset::Dataset(Split split, std::shared_ptr<const Source> source)
    : split_(split), source_(std::move(source)) {}

Batch Dataset::get_batch(c10::ArrayRef<size_t> indices) {
  phases::fetches(split_);
  if (recording::enabled()) recording::record(Kind::fetch, fetch_payload(split_, indices));
  for (const auto index : indices) {
    TORCH_CHECK_INDEX(index < source_->size(), "sample ", index, " of a split with ",
                      source_->size(), " samples");
  }
  auto batch = source_->fetch(indices);
  if (recording::enabled()) remember_fetched(batch, fetch_payload(split_, indices));
  return batch;
}

std::optional<size_t> Dataset::size() const { return source_->size(); }

std::shared_ptr<Model> Task::make_model() const {
  auto model = new_model();
  model->to(precision_);
  if (recording::enabled()) recorded_model_ = model;
  return model;
}

std::unique_ptr<torch::optim::Optimizer> Task::make_optimizer(
    std::vector<torch::Tensor> parameters) const {
  if (recording::enabled()) record_parameters(parameters);
  return new_optimizer(std::move(parameters));
}

// The names are those of the last model made; a parameter of something else has none.
void Task::record_parameters(const std::vector<torch::Tensor>& parameters) const {
  const auto model = recorded_model_.lock();
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& parameter : parameters) {
    std::string name;
    if (model) {
      for (const auto& item : model->named_parameters()) {
        if (item.value().is_same(parameter)) name = item.key();
      }
    }
    named.emplace_back(std::move(name), parameter);
  }
  recording::record(Kind::parameters, parameters_payload(named));
}

std::unique_ptr<Schedule> Task::make_schedule(torch::optim::Optimizer& optimizer,
                                              int64_t total_steps) const {
  return std::make_unique<Schedule>(optimizer, schedule(total_steps));
}

Schedule::Factor Task::schedule(int64_t /*total_steps*/) const { return {}; }

Loss Task::loss(const torch::Tensor& output, const Target& target) const {
  auto loss = compute_loss(output, target);
  if (const auto count = static_cast<int64_t>(metrics().size()); count > 0) {
    loss.metrics = torch::GradMode::is_enabled()
                       ? at::zeros({count, 2}, loss.sum.options().dtype(torch::kDouble))
                       : compute_metrics(output, target);
  }
  if (recording::enabled()) {
    recording::record(Kind::loss, loss_payload(loss, torch::GradMode::is_enabled()));
  }
  if (!torch::GradMode::is_enabled()) phases::evaluated(loss);
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
  return {static_cast<Split>(found - names.begin()), new_source(split)};
}

torch::Tensor Task::no_totals(torch::Device device) const {
  const auto entries = static_cast<int64_t>(2 + 2 * metrics().size());
  return at::zeros({entries}, at::TensorOptions(torch::kDouble).device(device));
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
