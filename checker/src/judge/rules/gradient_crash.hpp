#pragma once
/// A rank that died between the beginning of backward() and the optimizer's step, where the program
/// averages gradients by itself: how far the messages of that step had come.
#include <cstdint>
#include <optional>

#include "evidence/run.hpp"

namespace checker::rules {

struct GradientCrash {
  /// What the log says of its cause.
  enum class Cause {
    gradient_not_there,  ///< in backward(), by a tensor that holds nothing: a gradient not computed
    memory_in_backward,  ///< in backward(), by memory that is not the program's: a hook's reference
    other_in_backward,   ///< in backward(), by something else: in a hook, or in what it calls
    no_message,          ///< behind backward(), by a value that is missing: gradients have not left
    nothing_missing,     ///< the same, but all gradients have left
    gradient_gone,       ///< behind backward(), by a gradient that holds nothing (any more)
    left_early,          ///< behind backward(), which has sent some of the gradients
    other_behind,        ///< behind backward(), by something else
  };
  Cause cause;
  size_t step = 1;           ///< in which it died, from 1
  uint64_t sent = 0;         ///< elements that have left in that step
  uint64_t sent_behind = 0;  ///< of these, behind backward()
  uint64_t all = 0;          ///< elements of the model's gradients
  bool sent_more = false;    ///< in the first step, which went well
};

/// died_of_memory: the system ended it, or the C library. Nothing if the rank did not get to
/// backward(), or died past the optimizer's step.
std::optional<GradientCrash> gradient_crash(const RankSeen& rank, bool died_of_memory);

}  // namespace checker::rules
