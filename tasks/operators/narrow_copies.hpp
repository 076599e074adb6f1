#pragma once
/// Copies of fp32 parameters in 16 bits, for products of these without a cast in every step.
#include <ATen/core/Tensor.h>

#include <unordered_map>

namespace tasks::operators {

/// One copy for each parameter that was ever asked for. A copy follows its parameter: whoever
/// changes the parameter (torch's optimizers, a checkpoint, DistributedDataParallel) makes it stale
/// and of() renews it; FusedAdamW writes both in one pass, and it never is. Not thread-safe.
class NarrowCopies {
 public:
  /// type: kBFloat16 or kHalf.
  explicit NarrowCopies(at::ScalarType type) : type_(type) {}

  at::ScalarType type() const { return type_; }

  /// The parameter's present value; without a gradient.
  at::Tensor of(const at::Tensor& parameter);

  /// The copy as it is, for who changes the parameter and the copy alike without torch's noticing;
  /// undefined if nobody asked for it yet.
  at::Tensor existing(const at::Tensor& parameter) const;

 private:
  struct Copy {
    at::Tensor tensor;
    uint32_t version = 0;        // of the parameter, as torch counts changes in place
    const void* data = nullptr;  // of the parameter
  };
  at::ScalarType type_;
  std::unordered_map<const c10::TensorImpl*, Copy> copies_;
};

}  // namespace tasks::operators
