#include "judge/rules/gradient_messages.hpp"

#include <algorithm>
#include <array>

#include "evidence/collective_kinds.hpp"

namespace checker::rules {

namespace {

constexpr uint64_t kFew = 2;  // as large as a loss, or a loss and a count

constexpr std::array kReductions{CollectiveKind::all_reduce, CollectiveKind::all_reduce_coalesced,
                                 CollectiveKind::reduce, CollectiveKind::reduce_scatter,
                                 CollectiveKind::reduce_scatter_tensor};

bool is_reduction(const CollectiveSeen& message) {
  return std::ranges::find(kReductions, static_cast<CollectiveKind>(message.call.op_type)) !=
         kReductions.end();
}

// The places in the log where a backward pass begins, and where it has computed all.
struct Backward {
  size_t begin = 0, end = SIZE_MAX;
};

std::vector<Backward> backwards(const RankSeen& rank) {
  std::vector<Backward> passes;
  const auto& events = rank.log.events;
  for (size_t place = 0; place < events.size(); ++place) {
    if (events[place].kind == Kind::backward) passes.push_back({.begin = place});
    if (events[place].kind == Kind::backward_ended && !passes.empty()) passes.back().end = place;
  }
  return passes;
}

}  // namespace

uint64_t GradientMessages::reduced() const {
  uint64_t elements = 0;
  for (const auto& message : messages) {
    if (is_reduction(*message.seen)) elements += message.seen->call.elements;
  }
  return elements;
}

bool GradientMessages::overlaps(const CollectiveSeen& message) const {
  if (message.waited_from) return message.products_meanwhile > 0;
  return message.call.products < last_product;
}

std::vector<GradientMessages> gradient_messages(const RankSeen& rank) {
  const auto passes = backwards(rank);
  std::vector<GradientMessages> steps;
  size_t after = 0;
  for (const auto& step : rank.steps) {
    auto& seen = steps.emplace_back();
    seen.step = steps.size() - 1;
    const auto begins = [&](const Backward& pass) { return pass.begin >= after; };
    const auto first = std::ranges::find_if(passes, begins);
    const size_t from = first == passes.end() ? step.event : first->begin;
    after = step.event;
    for (const auto& collective : rank.collectives) {
      if (collective.event < from || collective.event > step.event) continue;
      if (collective.call.elements <= kFew) continue;
      const bool in_backward = std::ranges::any_of(passes, [&](const Backward& pass) {
        return pass.begin < collective.event && collective.event < pass.end;
      });
      seen.messages.push_back({&collective, in_backward});
      seen.last_product =
          std::max(seen.last_product, collective.call.products + collective.products_meanwhile);
    }
  }
  return steps;
}

bool sends_gradients(const Run& run) {
  return std::ranges::any_of(run.ranks, [](const RankSeen& rank) {
    return std::ranges::any_of(gradient_messages(rank),
                               [](const GradientMessages& step) { return !step.messages.empty(); });
  });
}

bool sends_before_training(const Run& run) {
  return std::ranges::any_of(run.ranks, [](const RankSeen& rank) {
    const size_t end = rank.phases.empty() ? SIZE_MAX : rank.phases.front().event;
    return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& collective) {
      return collective.event < end && collective.call.elements > kFew;
    });
  });
}

}  // namespace checker::rules
