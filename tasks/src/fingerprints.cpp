#include "fingerprints.hpp"

#include <string_view>

#include "instrumentation/fnv1a.hpp"

namespace tasks {
namespace {

using instrumentation::fnv1a_step;

// Takes each row into the hash of its sample.
void take(const torch::Tensor& tensor, std::vector<uint64_t>& hashes) {
  const auto host = tensor.detach().cpu().contiguous();
  const auto* bytes = static_cast<const char*>(host.const_data_ptr());
  const size_t row = hashes.empty() ? 0 : host.nbytes() / hashes.size();
  for (size_t sample = 0; sample < hashes.size(); ++sample) {
    for (const char byte : std::string_view(bytes + sample * row, row)) {
      hashes[sample] = fnv1a_step(hashes[sample], static_cast<unsigned char>(byte));
    }
  }
}

std::vector<uint64_t> fingerprints_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<uint64_t> hashes;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || tensor.dim() == 0) return {};
    const auto samples = static_cast<size_t>(tensor.size(0));
    if (hashes.empty()) hashes.assign(samples, instrumentation::kFnvBasis);
    if (hashes.size() != samples) return {};
    take(tensor, hashes);
  }
  return hashes;
}

}  // namespace

std::vector<uint64_t> fingerprints_of(const Input& input) {
  return fingerprints_of(input.tensors());
}

std::vector<uint64_t> fingerprints_of(const Target& target) {
  return fingerprints_of(std::vector{target.tensor()});
}

}  // namespace tasks
