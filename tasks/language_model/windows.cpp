#include "windows.hpp"

#include <ATen/Functions.h>

namespace tasks::language_model {

Windows::Windows(at::Tensor tokens, int64_t sequence_length, int64_t stride)
    : tokens_(std::move(tokens)) {
  const bool any = tokens_.size(0) > sequence_length;
  windows_ = any ? tokens_.unfold(/*dimension=*/0, sequence_length + 1, stride)
                 : tokens_.new_empty({0, sequence_length + 1});
}

Batch Windows::fetch(c10::ArrayRef<size_t> indices) const {
  const auto which = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), which.data_ptr<int64_t>());
  const auto batch = windows_.index_select(0, which).to(at::kLong);
  const auto length = batch.size(1) - 1;
  return {batch.narrow(1, 0, length), batch.narrow(1, 1, length)};
}

size_t Windows::size() const { return static_cast<size_t>(windows_.size(0)); }

}  // namespace tasks::language_model
