#pragma once
/// An embedding whose gradient needs no sort.
#include <ATen/core/Tensor.h>

#include "operators/embedding_rows.hpp"

namespace tasks::operators {

/// at::embedding(weight, indices). On GPUs the gradient of fp32 weights for up to 16,384 indices is
/// added up by one kernel, in the order of the indices, the same bits every time; torch's own sorts
/// the indices with half a dozen. Elsewhere it is torch's. weight: [words, width]; indices: int64
/// [...]; returns [..., width]. rows: given, backward() makes the mean of all ranks' gradients.
at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices,
                     const c10::intrusive_ptr<EmbeddingRows>& rows = {});

}  // namespace tasks::operators
