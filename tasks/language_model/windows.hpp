#pragma once
/// Samples of a text: windows that overlap, cut out only when they are fetched.
#include <ATen/core/Tensor.h>

#include "tasks/task.hpp"

namespace tasks::language_model {

/// Sample i is the words from i * stride on: `sequence_length` of them, and as targets the same
/// moved on by one. The text is held once, however much windows overlap.
class Windows : public Dataset::Source {
 public:
  /// tokens: int32 [words], on the CPU. A text of fewer than sequence_length + 1 words has no
  /// samples.
  Windows(at::Tensor tokens, int64_t sequence_length, int64_t stride);

  /// Two int64 tensors [batch, sequence_length].
  Batch fetch(c10::ArrayRef<size_t> indices) const override;
  size_t size() const override;

  const at::Tensor& tokens() const { return tokens_; }

 private:
  at::Tensor tokens_;
  at::Tensor windows_;  // [size, sequence_length + 1], a view of tokens_
};

}  // namespace tasks::language_model
