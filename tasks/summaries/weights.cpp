#include "weights.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

constexpr const char* kShared = "shared.weight";

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw Error(
      fmt::format("{}: {}. Fix: name a T5 whose sizes are the configuration's, such as "
                  "t5-base's model.safetensors.",
                  file.string(), why));
}

// What files name beside the parameters: copies of the embedding, and a bias that early versions
// saved and never used.
bool is_copy_of_shared(std::string_view name) {
  return name == "encoder.embed_tokens.weight" || name == "decoder.embed_tokens.weight" ||
         name == "lm_head.weight";
}
constexpr std::string_view kNeverUsed =
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";

}  // namespace

Weights::Weights(std::filesystem::path file)
    : file_(std::move(file)), tensors_(distributed_utils::load_file(file_)) {
  const auto shared = tensors_.find(kShared);
  if (shared == tensors_.end()) refuse(file_, fmt::format("has no tensor {}", kShared));
  if (shared->second.dim() != 2) refuse(file_, fmt::format("{} is not a matrix", kShared));
}

void Weights::load_into(EncoderDecoder& model) const {
  check_others(model);
  const torch::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) {
    const auto found = tensors_.find(item.key());
    if (found == tensors_.end()) refuse(file_, fmt::format("has no tensor {}", item.key()));
    const auto& saved = found->second;
    if (saved.sizes() != item.value().sizes() || !saved.is_floating_point()) {
      refuse(file_, fmt::format("{} is {} [{}] where the configuration has [{}]", item.key(),
                                c10::toString(saved.scalar_type()), fmt::join(saved.sizes(), ", "),
                                fmt::join(item.value().sizes(), ", ")));
    }
    item.value().copy_(saved);
  }
}

void Weights::check_others(const EncoderDecoder& model) const {
  const auto parameters = model.named_parameters();
  for (const auto& [name, tensor] : tensors_) {
    if (parameters.contains(name) || name == kNeverUsed) continue;
    if (!is_copy_of_shared(name)) {
      refuse(file_, fmt::format("has a tensor {}, which the model does not have", name));
    }
    if (!at::equal(tensor, tensors_.at(kShared))) {
      refuse(file_, fmt::format("{} differs from {}, which this model has instead", name, kShared));
    }
  }
}

}  // namespace tasks::summaries
