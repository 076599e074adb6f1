// Gradients travel in a few messages of about one size.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "judge/rules/gradient_messages.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void buckets(const RunContext& context, Symptoms& symptoms);

namespace {

// As ddp.hpp of the step has it: 25 MiB, or a quarter of a small model.
uint64_t bucket_bytes(uint64_t all) { return std::min<uint64_t>(25 << 20, all / 4); }

// Bytes of an element of the gradients, which are all of one type.
uint64_t element_bytes(const CollectiveSeen& message) {
  return message.call.elements == 0 ? 0 : message.call.bytes / message.call.elements;
}

// What a right program may put into one message: it may begin the next bucket before a parameter
// that no longer fits, or after it.
uint64_t most_bytes(const RankSeen& rank, uint64_t element) {
  uint64_t largest = 0;
  for (const auto& parameter : rank.parameters) {
    largest = std::max(largest, parameter.elements * element);
  }
  return bucket_bytes(elements_of_model(rank) * element) + largest;
}

// The second of two neighbours that together would not fill half a bucket. The first bucket may be
// a small one, so that the first message starts soon.
std::optional<size_t> hardly_filled(const std::vector<GradientMessage>& messages, uint64_t limit) {
  for (size_t i = 2; i < messages.size(); ++i) {
    const auto both = messages[i - 1].seen->call.bytes + messages[i].seen->call.bytes;
    if (both <= limit / 2) return i;
  }
  return std::nullopt;
}

// A message of neighbours that was over the limit before its last parameter came. Nothing where
// the messages, in their order, do not hold the parameters in this order.
template <class Parameter>
std::optional<size_t> overfull(const std::vector<GradientMessage>& messages, Parameter parameter,
                               Parameter end, uint64_t limit) {
  std::optional<size_t> found;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& call = messages[i].seen->call;
    if (call.elements == 0) continue;
    uint64_t held = 0;
    while (held < call.elements && parameter != end) {
      if (held * element_bytes(*messages[i].seen) > limit && !found) found = i;
      held += (parameter++)->elements;
    }
    if (held != call.elements) return std::nullopt;
  }
  return found;
}

}  // namespace

void buckets(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("BUCKETS") || context.world() == 1) return;
  // Of the last step: by then a program has found its buckets.
  const auto& rank = context.run().ranks.front();
  const auto steps = gradient_messages(rank);
  const auto last = std::find_if(steps.rbegin(), steps.rend(), [](const GradientMessages& step) {
    return !step.messages.empty();
  });
  if (last == steps.rend()) return;
  const auto& messages = last->messages;
  const auto& largest = *std::ranges::max_element(
      messages, {}, [](const GradientMessage& message) { return message.seen->call.bytes; });
  Symptom symptom{.values = context.values(),
                  .evidence = {{"messages",
                                {{"count", messages.size()},
                                 {"gradients", rank.parameters.size()},
                                 {"bytes", largest.seen->call.bytes}}}}};
  const auto most = most_bytes(rank, element_bytes(*largest.seen));
  symptom.values["most"] = most;
  const auto limit = bucket_bytes(elements_of_model(rank) * element_bytes(*largest.seen));
  const auto& all = rank.parameters;
  const auto from_the_end = overfull(messages, all.rbegin(), all.rend(), limit);
  const auto full = from_the_end ? from_the_end : overfull(messages, all.begin(), all.end(), limit);
  if (messages.size() >= rank.parameters.size()) {
    symptom.id = "no_buckets";
    symptom.kind = FindingKind::not_started;
  } else if (messages.size() == 1) {
    symptom.id = "one_bucket";
  } else if (largest.seen->call.bytes > most) {
    symptom.id = "bucket_too_large";
  } else if (full) {
    symptom.id = "bucket_too_large";
    symptom.variant = "overfull";
    symptom.evidence = {
        {"overfull",
         {{"message", *full + 1}, {"bytes", messages[*full].seen->call.bytes}, {"limit", limit}}}};
  } else if (const auto second = hardly_filled(messages, limit)) {
    symptom.id = "buckets_not_filled";
    symptom.evidence = {{"neighbours",
                         {{"first", *second},
                          {"second", *second + 1},
                          {"bytes", messages[*second - 1].seen->call.bytes},
                          {"more", messages[*second].seen->call.bytes},
                          {"limit", limit}}}};
  } else {
    return;
  }
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
