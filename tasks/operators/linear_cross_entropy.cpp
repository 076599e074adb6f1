#include "linear_cross_entropy.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "operators/cross_entropy_rows.hpp"
#ifdef USE_CUDA
#include "operators/exponential_loss.hpp"
#endif
#include "operators/parameter_gradients.hpp"
#include "operators/products.hpp"

namespace tasks::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kChunkBytes = int64_t{64} << 20;

// Where the gradient is kept anyway, chunks save no memory, and on an H200 none is small enough for
// its L2 cache and large enough for its processors: all rows at once took 1.15 ms where 256 at a
// time took 1.29 (bf16, 4,096 rows, 66,000 words).
int64_t rows_at_a_time(const at::Tensor& x, int64_t vocabulary, bool gradient, int64_t given) {
  if (given > 0) return given;
  if (gradient) return std::max<int64_t>(x.size(0), 1);
  const auto row_bytes = vocabulary * static_cast<int64_t>(x.element_size());
  return std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 1);
}

// Probabilities of rare words, a millionth and less, are lost to fp16 unless they are raised.
double factor_of(at::ScalarType type) { return type == at::kHalf ? 4096 : 1; }

struct LinearRows {
  at::Tensor losses;       // [rows], wide; 0 for ignored targets
  at::Tensor gradient;     // [rows, vocabulary], of the losses' sum by the logits; or undefined
  at::Tensor column_sums;  // [anything, vocabulary], wide: the gradient's; or undefined
  at::Tensor factors;      // [rows], wide: what the gradient's rows lack; or undefined
};

#ifdef USE_CUDA
LinearRows at_once(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b,
                   const at::Tensor& target, const RowsOptions& options) {
  const auto made = exponential_loss(x, w, b, target, options.ignore_index, options.gradient);
  return {made.losses, made.exponentials, {}, made.factors};
}
#endif

LinearRows in_chunks(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b,
                     const at::Tensor& target, const RowsOptions& options, int64_t chunk_rows) {
  const int64_t rows = x.size(0), vocabulary = w.size(0);
  const int64_t chunk = rows_at_a_time(x, vocabulary, options.gradient, chunk_rows);
  const auto logits =
      at::empty({options.gradient ? rows : std::min(rows, chunk), vocabulary}, x.options());
  const auto column_sums =
      options.gradient ? make_column_sums(std::min(rows, chunk), logits) : at::Tensor();
  const auto losses = at::empty({rows}, x.options().dtype(wide_type(x.scalar_type())));
  for (int64_t row = 0; row < rows; row += chunk) {
    const int64_t count = std::min(chunk, rows - row);
    auto part = logits.narrow(0, options.gradient ? row : 0, count);
    at::addmm_out(part, b, x.narrow(0, row, count), w.t());
    losses.narrow(0, row, count)
        .copy_(cross_entropy_rows(part, target.narrow(0, row, count), column_sums, options));
  }
  return {losses, options.gradient ? logits : at::Tensor(), column_sums, {}};
}

LinearRows made_of(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b,
                   const at::Tensor& target, const RowsOptions& options, int64_t chunk_rows) {
  const at::NoGradGuard no_grad;
#ifdef USE_CUDA
  if (options.label_smoothing == 0 && chunk_rows == 0 && has_exponential_loss(x, w)) {
    return at_once(x, w, b, target, options);
  }
#endif
  return in_chunks(x, w, b, target, options, chunk_rows);
}

// Of the hidden vectors alone; what the parameters' gradients are made of goes to `parameters`.
// The logits' gradient has long been made: forward() has nothing left to do.
class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static Variable forward(AutogradContext* context, const Variable& hidden, const Variable& product,
                          const Variable& sums, const Variable& scale, const Variable& factors,
                          const LinearRows& made, const Variable& w, double factor) {
    (void)hidden, (void)product, (void)sums, (void)scale, (void)factors;
    context->save_for_backward({made.gradient, made.column_sums, made.factors, w});
    context->saved_data["factor"] = factor;
    return made.losses.sum();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& [gradient, column_sums, factors, w] =
        std::tie(saved[0], saved[1], saved[2], saved[3]);
    const auto& scale = gradients[0];
    const auto by_row = factors.defined() ? factors * scale : at::Tensor();
    variable_list results(8);
    if (context->needs_input_grad(0)) {
      const double factor = context->saved_data["factor"].toDouble();
      results[0] =
          product(gradient, w).mul_(by_row.defined() ? by_row.unsqueeze(1) : scale / factor);
    }
    results[1] = gradient;
    if (by_row.defined()) {
      results[4] = by_row;
    } else {
      results[2] = column_sums.sum(0);
      results[3] = scale;
    }
    return results;
  }
};

void check(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
           const at::Tensor& target, const LinearCrossEntropyOptions& options) {
  TORCH_CHECK(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1) &&
                  bias.dim() == 1 && bias.size(0) == weight.size(0) && target.dim() == 1 &&
                  target.size(0) == hidden.size(0),
              "linear_cross_entropy: hidden ", hidden.sizes(), ", weight ", weight.sizes(),
              ", bias ", bias.sizes(), " and target ", target.sizes(), " do not fit");
  TORCH_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
              "linear_cross_entropy: label_smoothing is ", options.label_smoothing,
              ", not in [0, 1]");
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                const at::Tensor& bias, const at::Tensor& target,
                                const LinearCrossEntropyOptions& options) {
  check(hidden, weight, bias, target, options);
  const bool gradient = at::GradMode::is_enabled() &&
                        (hidden.requires_grad() || weight.requires_grad() || bias.requires_grad());
  auto* copies = options.copies;
  const auto x = (copies ? hidden.detach().to(copies->type()) : hidden.detach()).contiguous();
  const auto w = copies ? copies->of(weight) : weight.detach();
  const auto b = copies ? copies->of(bias) : bias.detach();
  const RowsOptions rows{.ignore_index = options.ignore_index,
                         .label_smoothing = options.label_smoothing,
                         .gradient = gradient,
                         .gradient_factor = factor_of(x.scalar_type())};
  const auto made = made_of(x, w, b, target, rows, options.chunk_rows);
  if (!gradient) return made.losses.sum();
  const auto parameters = parameter_gradients(x, weight, bias, rows.gradient_factor);
  return LinearCrossEntropy::apply(hidden, parameters.product, parameters.sums, parameters.scale,
                                   parameters.factors, made, w, rows.gradient_factor);
}

}  // namespace tasks::operators
