#pragma once
/// Cross-entropy of rows of logits, with the gradient in the logits' place.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

struct RowsOptions {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool gradient = false;       ///< replace logits by it
  double gradient_factor = 1;  ///< times this
};

/// Room for sums of columns over up to `rows` rows, zero: [anything, columns]. Their sum over the
/// first dimension is what counts.
at::Tensor make_column_sums(int64_t rows, const at::Tensor& logits);

/// The losses of the rows of `logits` ([rows, columns], contiguous), wide; 0 for ignored targets.
/// With options.gradient the logits become the gradient of the losses' sum, and its columns' sums
/// are added to `column_sums`. Throws c10::Error for a target that is not a column, on CPUs; a GPU
/// stops with a message.
at::Tensor cross_entropy_rows(const at::Tensor& logits, const at::Tensor& target,
                              const at::Tensor& column_sums, const RowsOptions& options);

}  // namespace tasks::operators
