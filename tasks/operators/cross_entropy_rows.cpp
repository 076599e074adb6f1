#include "cross_entropy_rows.hpp"

#include <ATen/Functions.h>

#include "operators/products.hpp"

#ifdef USE_CUDA
#include "gpu.hpp"
#include "kernels/kernels.hpp"
#endif

namespace tasks::operators {
namespace {

// With torch's operators; the kernels' oracle as well.
at::Tensor rows_by_operators(const at::Tensor& logits, const at::Tensor& target,
                             const at::Tensor& column_sums, const RowsOptions& options) {
  const double smoothing = options.label_smoothing;
  const auto wide = logits.to(wide_type(logits.scalar_type()));
  const auto log_sums = wide.logsumexp(1, /*keepdim=*/true);
  const auto ignored = (target == options.ignore_index).unsqueeze(1);
  const auto column = target.unsqueeze(1).masked_fill(ignored, 0);
  auto losses = log_sums - (1 - smoothing) * wide.gather(1, column);
  if (smoothing > 0) losses = losses - smoothing * wide.mean(1, /*keepdim=*/true);
  losses.masked_fill_(ignored, 0);
  if (options.gradient) {
    auto gradient = (wide - log_sums).exp_();
    if (smoothing > 0) gradient.sub_(smoothing / static_cast<double>(wide.size(1)));
    gradient.scatter_add_(1, column, at::full_like(log_sums, smoothing - 1));
    gradient.masked_fill_(ignored, 0);
    column_sums.select(0, 0).add_(gradient.sum(0));
    logits.copy_(gradient.mul_(options.gradient_factor));
  }
  return losses.squeeze(1);
}

#ifdef USE_CUDA
at::Tensor rows_by_kernels(const at::Tensor& logits, const at::Tensor& target,
                           const at::Tensor& column_sums, const RowsOptions& options) {
  const auto wide = logits.options().dtype(wide_type(logits.scalar_type()));
  const auto log_sums = at::empty({logits.size(0)}, wide);
  auto losses = at::empty({logits.size(0)}, wide);
  const auto indices = target.contiguous();
  const kernels::CrossEntropy arguments{
      .type = kernel_type(logits.scalar_type(), "cross_entropy_rows: logits"),
      .logits = logits.mutable_data_ptr(),
      .target = indices.const_data_ptr<int64_t>(),
      .log_sums = log_sums.mutable_data_ptr(),
      .losses = losses.mutable_data_ptr(),
      .column_sums = options.gradient ? column_sums.mutable_data_ptr() : nullptr,
      .rows = logits.size(0),
      .vocabulary = logits.size(1),
      .ignore_index = options.ignore_index,
      .label_smoothing = options.label_smoothing,
      .gradient_factor = options.gradient_factor};
  const auto stream = stream_of(logits);
  kernels::cross_entropy_losses(arguments, stream);
  if (options.gradient) kernels::cross_entropy_gradients(arguments, stream);
  return losses;
}
#endif

}  // namespace

at::Tensor make_column_sums(int64_t rows, const at::Tensor& logits) {
  int64_t slabs = 1;
#ifdef USE_CUDA
  if (logits.is_cuda()) slabs = std::max<int64_t>(1, kernels::slabs(rows));
#else
  (void)rows;
#endif
  return at::zeros({slabs, logits.size(1)},
                   logits.options().dtype(wide_type(logits.scalar_type())));
}

at::Tensor cross_entropy_rows(const at::Tensor& logits, const at::Tensor& target,
                              const at::Tensor& column_sums, const RowsOptions& options) {
  TORCH_CHECK(logits.is_contiguous() && target.dim() == 1 && target.size(0) == logits.size(0),
              "cross_entropy_rows: logits ", logits.sizes(), " and targets ", target.sizes(),
              " do not fit");
#ifdef USE_CUDA
  if (logits.is_cuda()) return rows_by_kernels(logits, target, column_sums, options);
#endif
  return rows_by_operators(logits, target, column_sums, options);
}

}  // namespace tasks::operators
