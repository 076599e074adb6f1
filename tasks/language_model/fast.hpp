#pragma once
/// The parts of this task that --fast names (see tasks/options.hpp): operators of ours instead of
/// several of torch's.
#include <string_view>
#include <vector>

#include "tasks/options.hpp"

namespace tasks::language_model {

struct FastParts {
  bool loss;       ///< the last linear layer and the cross-entropy in one
  bool optimizer;  ///< AdamW in one kernel, which writes the weights for bf16 products too
  bool embedding;  ///< the embedding's gradient without a sort, averaged by rows in use
  bool attention;  ///< attention in one, for short sequences
  bool norm;       ///< dropout, residual sum and layer norm in one
  bool relu;       ///< ReLU and dropout in one
};

inline std::vector<std::string_view> fast_names() {
  return {"loss", "optimizer", "embedding", "attention", "norm", "relu"};
}

inline FastParts fast_parts(const Fast& fast) {
  return {.loss = fast.has("loss"),
          .optimizer = fast.has("optimizer"),
          .embedding = fast.has("embedding"),
          .attention = fast.has("attention"),
          .norm = fast.has("norm"),
          .relu = fast.has("relu")};
}

}  // namespace tasks::language_model
