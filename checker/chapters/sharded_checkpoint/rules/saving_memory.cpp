// No rank gathers the model to save it: what a rank's tensors take while it saves is about its
// share. Counted from the report of the losses, behind which a trainer saves, to the last file.
// Where a rank computes once more between the two, that may take the memory, and nothing is said.
#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void saving_memory(const RunContext& context, Symptoms& symptoms);

namespace {

using instrumentation::Moment;

// A rank may copy its share of parameters and state before it writes them. What the ranks tell each
// other of it is little beside all.
constexpr double kCopies = 1.05, kWords = 0.1;

bool computes_between(const RankSeen& rank, size_t begin, size_t end) {
  return std::ranges::any_of(rank.forwards, [&](const ForwardSeen& forward) {
    return forward.event > begin && forward.event < end;
  });
}

double most_while_saving(const RankSeen& rank) {
  double most = 0;
  const MemorySeen* reported = nullptr;
  for (const auto& seen : rank.memory) {
    if (seen.bytes.moment == Moment::reported) {
      reported = &seen;
    } else if (seen.bytes.moment != Moment::file) {
      reported = nullptr;
    } else if (reported != nullptr && !computes_between(rank, reported->event, seen.event)) {
      most = std::max(
          most, static_cast<double>(seen.bytes.most) - static_cast<double>(reported->bytes.live));
    }
  }
  return most;
}

}  // namespace

void saving_memory(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("SHARDS") || !context.truth.saved || !context.truth.memory) return;
  const auto& serial = *context.truth.memory;
  const double parameters = static_cast<double>(serial.parameters);
  const double share =
      (parameters + static_cast<double>(serial.state)) / static_cast<double>(context.world());
  const double limit = kCopies * share + kWords * parameters;
  if (limit >= parameters) return;  // in so small a world a share is as much as the model
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const double most = most_while_saving(context.run().ranks[rank]);
    if (most <= limit) continue;
    symptoms.push_back({.id = "gathered_to_save",
                        .values = context.values(),
                        .evidence = {{"more",
                                      {{"rank", rank},
                                       {"most", kilobytes(most)},
                                       {"model", kilobytes(parameters)},
                                       {"share", kilobytes(share)}}}}});
    return;
  }
}

}  // namespace checker::rules
