#pragma once
/// The gradient of an embedding that all ranks have, by the rows that any of them has used: a batch
/// uses a few thousand of many more words. They are gathered from all ranks, as c10d's Gloo does
/// for sparse tensors (ProcessGroupGloo.cpp, AsyncSparseAllreduceWork).
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "distributed_utils/process_group.hpp"

namespace tasks::operators {

class EmbeddingRows : public torch::CustomClassHolder {
 public:
  /// most: indices in one backward(), on any rank; the same number on every rank.
  EmbeddingRows(distributed_utils::Group group, int64_t most);

  /// True if less travels than an all-reduce of a weight's gradient sends, and it is of a kind that
  /// mean() knows. weight: [words, width].
  bool pays_for(const at::Tensor& weight) const;

  /// The mean over ranks of their gradients, the same bits everywhere; all of them call it at once.
  /// gradient: fp32 [..., width], of the rows that indices ([...], int64) picked. Returns
  /// [words, width]. Throws Error for more indices than were promised.
  at::Tensor mean(const at::Tensor& gradient, const at::Tensor& indices, int64_t words) const;

 private:
  distributed_utils::Group group_;
  int64_t most_;
};

}  // namespace tasks::operators
