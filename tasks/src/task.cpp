// The seams: what every task is made to do passes here and is recorded, if this process records.
#include "tasks/task.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <atomic>
#include <span>

#include "distributed_utils/recording.hpp"
#include "evidence.hpp"
#include "fetched.hpp"
#include "phases.hpp"

namespace tasks {

namespace recording = distributed_utils::recording;
using recording::Kind;

namespace {

void record_device(torch::Device device) {
  // Batches come by the thousand, devices change once: what was last recorded, 0 at first.
  static std::atomic<int> last{0};
  const int code = 1 + static_cast<int>(device.type()) * 1000 + device.index() + 1;
  if (last.exchange(code) != code) recording::record(Kind::device, device.str());
}

// To a GPU from pinned memory, so that nobody waits: the copy takes its place behind the kernels of
// the steps before, and the host goes on to fetch and enqueue what follows.
torch::Tensor to_device(const torch::Tensor& tensor, torch::Device device) {
  if (!device.is_cuda() || !tensor.is_cpu()) return tensor.to(device);
  return tensor.contiguous().pin_memory().to(device, /*non_blocking=*/true);
}

void record_reported(double mean_loss) {
  recording::record(Kind::reported, std::as_bytes(std::span(&mean_loss, 1)));
}

}  // namespace

Batch Batch::to(torch::Device device) const {
  if (recording::enabled()) {
    record_device(device);
    if (const auto samples = fetched_in(*this); !samples.empty()) {
      recording::record(Kind::taken, samples);
    }
  }
  Batch there{to_device(input, device), to_device(target, device)};
  phases::taken(device);
  return there;
}

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

torch::Tensor Loss::totals() const {
  const auto value = sum.detach().to(torch::kDouble);
  return at::stack({value, at::full({}, count, value.options())});
}

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

torch::Tensor Loss::mean() const {
  if (recording::enabled()) recording::note_place();  // backward() starts from here
  if (torch::GradMode::is_enabled()) phases::backward_begins();
  return sum / count;
}

Loss Task::loss(const torch::Tensor& output, const torch::Tensor& target) const {
  auto loss = compute_loss(output, target);
  if (recording::enabled()) {
    recording::record(Kind::loss, loss_payload(loss, torch::GradMode::is_enabled()));
  }
  if (!torch::GradMode::is_enabled()) phases::evaluated(loss);
  return loss;
}

std::string Task::format(double mean_loss) const {
  phases::evaluation_ends();
  if (recording::enabled()) record_reported(mean_loss);
  return fmt::format("{:#.{}g}", mean_loss, precision_ == torch::kFloat64 ? 15 : 6);
}

std::string Task::describe(double mean_loss) const {
  phases::evaluation_ends();
  if (recording::enabled()) record_reported(mean_loss);
  return in_words(mean_loss);
}

}  // namespace tasks
