#pragma once
/// The messages by which ranks average gradients: what a rank issues between the beginning of a
/// backward pass and the optimizer step that follows it.
#include <optional>
#include <vector>

#include "evidence/run.hpp"
#include "judge/oracle.hpp"

namespace checker::rules {

struct GradientMessage {
  const CollectiveSeen* seen = nullptr;
  bool in_backward = false;  ///< backward() had not ended when it was issued
  /// A thread waits for it that computes nothing: nobody sees whether backward() waits for that.
  bool aside = false;

  bool reduces() const;
};

/// Of one rank in one step.
struct GradientMessages {
  size_t step = 0;  ///< from 0
  std::vector<GradientMessage> messages;
  uint64_t last_product = 0;  ///< products that had begun when the last message was waited for

  /// Elements that leave, all messages together.
  uint64_t sent() const;
  /// Elements that are reduced, all messages together.
  uint64_t reduced() const;
  /// Whether the program went on computing between the call and its wait, as far as one can see.
  bool overlaps(const GradientMessage& message) const;
};

/// By step; those without messages, too. A message of one or two elements is a loss.
std::vector<GradientMessages> gradient_messages(const RankSeen& rank);

/// Whether any rank sends gradients in any step.
bool sends_gradients(const Run& run);
/// Whether a rank sends while backward() runs, and another steps after the same backward() without
/// having sent anything since it began.
bool only_some_send_in_backward(const Run& run);
/// Whether anybody sees the waits for this: not in a group that the program made alone.
bool is_followed(const RankSeen& rank, const CollectiveSeen& message);
/// Whether in this step all ranks reduce to one rank, and bring nothing from there to the others.
bool only_reduces(const Run& run, size_t step);
/// Whether a rank does not send all gradients in this step, those of a few elements apart.
bool leaves_some_behind(const Run& run, size_t step);
/// Whether all ranks send each gradient in a message of its own in this step, from backward().
bool sends_each_alone(const Run& run, size_t step);
/// Whether a rank sends fewer gradients in this step than in its first.
bool sends_less_than_first(const Run& run, size_t step);
/// Of this rank's step: what it sums up after backward(), although it has reduced the gradients
/// there already; null: nothing.
const CollectiveSeen* summed_once_more(const RankSeen& rank, size_t step);
/// The rank whose gradients all ranks hold in this step, who have more than one; nothing if there
/// is none. tolerance: relative.
std::optional<size_t> giver_of_gradients(const Run& run, const ExpectedWorld& truth, size_t step,
                                         double tolerance);
/// The place in the log of the rank's first batch; SIZE_MAX: there is none.
size_t first_batch(const RankSeen& rank);
/// Of all the rank's parameters.
uint64_t elements_of_model(const RankSeen& rank);
/// Whether any rank sends more than a number before its first batch, weights for example.
bool sends_before_training(const Run& run);
/// How many broadcasts a rank calls before its first batch.
size_t broadcasts_before_training(const RankSeen& rank);
/// Whether a rank sends about as much as a model between an optimizer's step and what it computes
/// next: weights, for example.
bool sends_after_steps(const Run& run);

}  // namespace checker::rules
