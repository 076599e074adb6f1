#include "linear_cross_entropy.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "operators/cross_entropy_rows.hpp"
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

// Scaling the narrower operand is cheaper than scaling the product, but for fp16 it may get lost.
at::Tensor weight_gradient(const at::Tensor& logits, const at::Tensor& x, const at::Tensor& scale,
                           double factor) {
  if (factor != 1) return product(logits.t(), x).mul_(scale / factor);
  return product(logits.t(), x * scale.to(x.scalar_type()));
}

class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static Variable forward(AutogradContext* context, const Variable& hidden, const Variable& weight,
                          const Variable& bias, const Variable& target,
                          const LinearCrossEntropyOptions& options, bool gradient) {
    const auto* copies = options.copies;
    const auto x = copies ? hidden.to(options.copies->type()) : hidden;
    const auto w = copies ? options.copies->of(weight) : weight.detach();
    const auto b = copies ? options.copies->of(bias) : bias.detach();
    const int64_t rows = x.size(0);
    const int64_t vocabulary = w.size(0);
    const int64_t chunk = rows_at_a_time(x, vocabulary, gradient, options.chunk_rows);
    const auto logits =
        at::empty({gradient ? rows : std::min(rows, chunk), vocabulary}, x.options());
    const auto column_sums =
        gradient ? make_column_sums(std::min(rows, chunk), logits) : at::Tensor();
    auto sum = at::zeros({}, x.options().dtype(wide_type(x.scalar_type())));
    std::vector<at::Tensor> losses;
    for (int64_t row = 0; row < rows; row += chunk) {
      const int64_t count = std::min(chunk, rows - row);
      auto part = logits.narrow(0, gradient ? row : 0, count);
      at::addmm_out(part, b, x.narrow(0, row, count), w.t());
      losses.push_back(cross_entropy_rows(part, target.narrow(0, row, count), column_sums,
                                          {.ignore_index = options.ignore_index,
                                           .label_smoothing = options.label_smoothing,
                                           .gradient = gradient,
                                           .gradient_factor = factor_of(x.scalar_type())}));
    }
    if (rows > 0) sum = at::cat(losses).sum();
    if (gradient) {
      context->save_for_backward({logits, x, w, column_sums});
    }
    return sum;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& [logits, x, w, column_sums] = std::tie(saved[0], saved[1], saved[2], saved[3]);
    const double factor = factor_of(logits.scalar_type());
    const auto& scale = gradients[0];
    const auto hidden =
        context->needs_input_grad(0) ? product(logits, w).mul_(scale / factor) : Variable();
    const auto weight =
        context->needs_input_grad(1) ? weight_gradient(logits, x, scale, factor) : Variable();
    const auto bias = context->needs_input_grad(2) ? column_sums.sum(0).mul_(scale) : Variable();
    return {hidden, weight, bias, Variable(), Variable(), Variable()};
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
  return LinearCrossEntropy::apply(hidden.contiguous(), weight, bias, target, options, gradient);
}

}  // namespace tasks::operators
