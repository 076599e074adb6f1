// Gradients travel in a few messages of about one size.
#include <algorithm>
#include <cstdint>

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
  uint64_t all = 0, largest = 0;
  for (const auto& parameter : rank.parameters) {
    all += parameter.elements * element;
    largest = std::max(largest, parameter.elements * element);
  }
  return bucket_bytes(all) + largest;
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
  if (messages.size() >= rank.parameters.size()) {
    symptom.id = "no_buckets";
    symptom.kind = FindingKind::not_started;
  } else if (messages.size() == 1) {
    symptom.id = "one_bucket";
  } else if (largest.seen->call.bytes > most) {
    symptom.id = "bucket_too_large";
  } else {
    return;
  }
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
