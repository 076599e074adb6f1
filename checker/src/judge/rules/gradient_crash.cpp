#include "judge/rules/gradient_crash.hpp"

#include <string_view>

#include "judge/departure.hpp"
#include "judge/rules/gradient_messages.hpp"

namespace checker::rules {

namespace {

using Cause = GradientCrash::Cause;

// The optimizer's step tells which parameters it holds, and may not have come yet.
uint64_t elements_as_made(const RankSeen& rank) {
  uint64_t elements = 0;
  for (const auto& tensor : rank.model) elements += tensor.buffer ? 0 : tensor.elements;
  return elements;
}

std::optional<size_t> last_place(const RankSeen& rank, Kind kind) {
  for (size_t place = rank.log.events.size(); place-- > 0;) {
    if (rank.log.events[place].kind == kind) return place;
  }
  return std::nullopt;
}

bool says(const RankSeen& rank, std::string_view words) {
  return last_words(rank).find(words) != std::string::npos;
}

// LibTorch's words for a tensor that holds nothing.
bool used_an_undefined_tensor(const RankSeen& rank) {
  return says(rank, "tensor does not have a device") || says(rank, "ndefined tensor") ||
         says(rank, "ndefined Tensor");
}

Cause cause_of(const RankSeen& rank, const GradientCrash& crash, bool in_backward, bool memory) {
  if (in_backward) {
    if (used_an_undefined_tensor(rank)) return Cause::gradient_not_there;
    return memory ? Cause::memory_in_backward : Cause::other_in_backward;
  }
  const bool some_sent = crash.sent > 0 && crash.sent < crash.all;
  if (!some_sent && used_an_undefined_tensor(rank)) return Cause::gradient_gone;
  if (!memory && !says(rank, "bad optional access")) {
    return some_sent && crash.sent_behind == 0 ? Cause::left_early : Cause::other_behind;
  }
  return crash.sent < crash.all ? Cause::no_message : Cause::nothing_missing;
}

}  // namespace

std::optional<GradientCrash> gradient_crash(const RankSeen& rank, bool died_of_memory) {
  const auto begin = last_place(rank, Kind::backward);
  const auto end = last_place(rank, Kind::backward_ended);
  const auto step = last_place(rank, Kind::gradients);
  if (!begin || (step && *step > *begin)) return std::nullopt;
  GradientCrash crash{.cause = {}, .step = rank.steps.size() + 1, .all = elements_as_made(rank)};
  for (const auto& collective : rank.collectives) {
    if (collective.event < *begin) continue;
    crash.sent += collective.call.elements;
    if (end && collective.event > *end) crash.sent_behind += collective.call.elements;
  }
  const auto steps = gradient_messages(rank);
  crash.sent_more = !steps.empty() && steps.front().sent() > crash.sent;
  crash.cause = cause_of(rank, crash, !end || *end < *begin, died_of_memory);
  return crash;
}

}  // namespace checker::rules
