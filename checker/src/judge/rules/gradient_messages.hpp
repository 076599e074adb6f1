#pragma once
/// The messages by which ranks average gradients: what a rank issues between the beginning of a
/// backward pass and the optimizer step that follows it.
#include <vector>

#include "evidence/run.hpp"

namespace checker::rules {

struct GradientMessage {
  const CollectiveSeen* seen = nullptr;
  bool in_backward = false;  ///< backward() had not ended when it was issued
};

/// Of one rank in one step.
struct GradientMessages {
  size_t step = 0;  ///< from 0
  std::vector<GradientMessage> messages;
  uint64_t last_product = 0;  ///< products that had begun when the last message was waited for

  /// Elements that are reduced, all messages together.
  uint64_t reduced() const;
  /// Whether the program went on computing between the call and its wait.
  bool overlaps(const CollectiveSeen& message) const;
};

/// By step; those without messages, too. A message of one or two elements is a loss.
std::vector<GradientMessages> gradient_messages(const RankSeen& rank);

/// Whether any rank sends gradients in any step.
bool sends_gradients(const Run& run);
/// Whether any rank sends more than a number before its first batch, weights for example.
bool sends_before_training(const Run& run);

}  // namespace checker::rules
