// Messages with gradients travel while backward() computes, once each, and the optimizer's step
// waits for them. Seen by the order of events alone: which products begin between a message and its
// wait.
#include <algorithm>
#include <array>
#include <string_view>

#include "judge/rules/gradient_messages.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void overlap(const RunContext& context, Symptoms& symptoms);

namespace {

// What comes of numbers that are read while they still change is luck.
constexpr std::array<std::string_view, 12> kLuck{"no_gradients",
                                                 "gradients_not_averaged",
                                                 "gradients_averaged_in_some_steps",
                                                 "gradients_averaged_over_some_ranks",
                                                 "gradients_summed",
                                                 "gradients_divided_twice",
                                                 "gradients_divided_wrongly",
                                                 "gradients_accumulate",
                                                 "some_gradients_not_averaged",
                                                 "gradients_wrong",
                                                 "parameters_drift_apart",
                                                 "parameters_changed_beside_the_optimizer"};

// Of one rank, all steps together.
struct Seen {
  size_t steps = 0;       ///< in which there are messages
  size_t overlapped = 0;  ///< in which one of them travels while something is computed
  size_t messages = 0, unawaited = 0;
  size_t first_unawaited = 0;  ///< the step of it
  bool in_backward = false;    ///< one is issued before backward() has ended
  bool early = false;          ///< one is issued while something is still to be computed
  bool in_buckets = false;     ///< fewer messages than gradients
  bool one_message = false;    ///< for all gradients
  bool last_first = false;     ///< buckets of neighbours, from the model's end to its beginning
  double most_reduced = 0;     ///< in a step, of the parameters' elements
  /// Messages with gradients in a step: behind backward() the most, where others start within it.
  size_t behind = 0, within = 0;
};

// Whether the messages are as large as neighbours among the parameters are together, those of the
// model's end first. Each of them then is complete long before backward() ends.
bool are_last_first(const RankSeen& rank, const GradientMessages& step) {
  auto parameter = rank.parameters.rbegin();
  for (const auto& message : step.messages) {
    uint64_t rest = message.seen->call.elements;
    for (; rest > 0; ++parameter) {
      if (parameter == rank.parameters.rend() || parameter->elements > rest) return false;
      rest -= parameter->elements;
    }
  }
  return parameter == rank.parameters.rend();
}

// A thread of the program's own starts its messages when the system lets it.
void count_behind(const GradientMessages& step, Seen& seen) {
  size_t behind = 0, within = 0;
  for (const auto& message : step.messages) {
    if (message.aside) return;
    if (message.reduces()) ++(message.in_backward ? within : behind);
  }
  if (within == 0 || behind <= seen.behind) return;
  seen.behind = behind;
  seen.within = within;
}

void look_at(const RankSeen& rank, const GradientMessages& step, Seen& seen) {
  bool overlapped = false;
  for (const auto& message : step.messages) {
    overlapped = overlapped || step.overlaps(message);
    seen.in_backward = seen.in_backward || message.in_backward;
    seen.early = seen.early || message.seen->call.products < step.last_product;
    const auto& until = message.seen->waited_until;
    const bool waited = until && *until < rank.steps[step.step].event;
    if (waited || message.seen->may_wait_unseen || !is_followed(rank, *message.seen)) continue;
    if (seen.unawaited++ == 0) seen.first_unawaited = step.step;
  }
  if (overlapped) ++seen.overlapped;
}

Seen look_at(const RankSeen& rank) {
  Seen seen;
  uint64_t elements = 0;
  for (const auto& parameter : rank.parameters) elements += parameter.elements;
  for (const auto& step : gradient_messages(rank)) {
    if (step.messages.empty()) continue;
    ++seen.steps;
    seen.messages += step.messages.size();
    seen.in_buckets = step.messages.size() < rank.parameters.size();
    seen.one_message = step.messages.size() == 1;
    seen.last_first = are_last_first(rank, step);
    const double times = static_cast<double>(step.reduced()) / static_cast<double>(elements);
    seen.most_reduced = std::max(seen.most_reduced, times);
    look_at(rank, step, seen);
    count_behind(step, seen);
  }
  return seen;
}

class Overlap {
 public:
  Overlap(const RunContext& context, Symptoms& symptoms) : context_(context), symptoms_(symptoms) {
    for (const auto& rank : context.run().ranks) ranks_.push_back(look_at(rank));
  }

  void judge() {
    if (waits_for_all() && travels_once() && overlaps()) all_start_early();
  }

 private:
  bool waits_for_all() {
    const auto found = std::ranges::find_if(ranks_, [](const Seen& s) { return s.unawaited > 0; });
    if (found == ranks_.end()) return true;
    std::erase_if(symptoms_, [](const Symptom& symptom) {
      return std::ranges::find(kLuck, symptom.id) != kLuck.end();
    });
    symptoms_.push_back({.id = "gradients_not_waited_for",
                         .values = context_.values(),
                         .evidence = {{"unawaited",
                                       {{"rank", place(found)},
                                        {"step", found->first_unawaited + 1},
                                        {"count", found->unawaited},
                                        {"all", found->messages}}}}});
    return false;
  }

  bool travels_once() {
    constexpr double kTwice = 1.5;
    const auto found =
        std::ranges::find_if(ranks_, [](const Seen& s) { return s.most_reduced > kTwice; });
    if (found == ranks_.end()) return true;
    symptoms_.push_back(
        {.id = "gradients_travel_twice",
         .values = context_.values(),
         .evidence = {
             {"times", {{"rank", place(found)}, {"times", digits(found->most_reduced)}}}}});
    return false;
  }

  // The first step may still find out in which order gradients come.
  bool overlaps() {
    const auto found = std::ranges::find_if(ranks_, [](const Seen& seen) {
      return seen.steps > 0 && seen.overlapped + 1 < std::max<size_t>(seen.steps, 2);
    });
    if (found == ranks_.end()) return true;
    if (found->one_message && found->in_backward) return false;  // one_bucket says it
    const bool late = found->in_backward && !found->early;
    // Buckets that are as they should be, and all the same leave together: their hooks wait.
    const bool hooks = late && found->in_buckets && found->last_first;
    const bool buckets = late && found->in_buckets && !hooks;
    symptoms_.push_back(
        {.id = "nothing_overlaps",
         .values = context_.values(),
         .evidence = {{"steps",
                       {{"rank", place(found)},
                        {"steps", found->steps},
                        {"messages", found->messages / found->steps}}}},
         .variant = found->early ? "at_once"
                    : hooks      ? "together"
                    : late       ? "late"
                                 : "",
         .blame = {buckets ? "nothing_overlaps.buckets" : "nothing_overlaps"},
         .kind = found->in_backward ? FindingKind::mistake : FindingKind::not_started});
    return false;
  }

  // What is left over at the end may be one message. The gradients of several were ready before.
  void all_start_early() {
    const auto found =
        std::ranges::find_if(ranks_, [](const Seen& seen) { return seen.behind > 1; });
    if (found == ranks_.end()) return;
    symptoms_.push_back({.id = "some_messages_late",
                         .values = context_.values(),
                         .evidence = {{"behind",
                                       {{"rank", place(found)},
                                        {"behind", found->behind},
                                        {"all", found->behind + found->within}}}}});
  }

  size_t place(std::vector<Seen>::const_iterator rank) const {
    return static_cast<size_t>(rank - ranks_.begin());
  }

  const RunContext& context_;
  Symptoms& symptoms_;
  std::vector<Seen> ranks_;
};

}  // namespace

void overlap(const RunContext& context, Symptoms& symptoms) {
  if (context.expects("HOOKS") && context.world() > 1) Overlap(context, symptoms).judge();
}

}  // namespace checker::rules
