#include "judge/rules/gradient_messages.hpp"

#include <algorithm>
#include <array>
#include <set>

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

bool sends_between(const RankSeen& rank, size_t begin, size_t end) {
  return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& collective) {
    return begin < collective.event && collective.event < end;
  });
}

// Whether it stepped after this pass, and sent nothing from the pass's beginning to the step.
bool steps_without_sending(const RankSeen& rank, const Backward& pass) {
  const auto step = std::ranges::find_if(
      rank.steps, [&](const StepSeen& seen) { return seen.event > pass.begin; });
  return step != rank.steps.end() && !sends_between(rank, pass.begin, step->event);
}

// Those that run the model or backward(), which on a GPU is autograd's own.
std::set<uint64_t> computing_threads(const RankSeen& rank) {
  std::set<uint64_t> threads;
  for (const auto& event : rank.log.events) {
    if (event.kind == Kind::forward || event.kind == Kind::backward) threads.insert(event.thread);
  }
  return threads;
}

}  // namespace

size_t first_batch(const RankSeen& rank) {
  return rank.phases.empty() ? SIZE_MAX : rank.phases.front().event;
}

uint64_t elements_of_model(const RankSeen& rank) {
  uint64_t elements = 0;
  for (const auto& parameter : rank.parameters) elements += parameter.elements;
  return elements;
}

bool is_followed(const RankSeen& rank, const CollectiveSeen& message) {
  return message.call.group < rank.groups.size() &&
         !rank.groups[message.call.group].members.empty();
}

bool GradientMessage::reduces() const { return is_reduction(*seen); }

uint64_t GradientMessages::sent() const {
  uint64_t elements = 0;
  for (const auto& message : messages) elements += message.seen->call.elements;
  return elements;
}

uint64_t GradientMessages::reduced() const {
  uint64_t elements = 0;
  for (const auto& message : messages) {
    if (message.reduces()) elements += message.seen->call.elements;
  }
  return elements;
}

bool GradientMessages::overlaps(const GradientMessage& message) const {
  if (message.aside) return true;
  if (message.seen->waited_from) return message.seen->products_meanwhile > 0;
  return message.seen->call.products < last_product;
}

std::vector<GradientMessages> gradient_messages(const RankSeen& rank) {
  const auto passes = backwards(rank);
  const auto computing = computing_threads(rank);
  const auto is_aside = [&](const CollectiveSeen& collective) {
    const size_t place = collective.waited_from.value_or(collective.event);
    return !computing.contains(rank.log.events[place].thread);
  };
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
      seen.messages.push_back({&collective, in_backward, is_aside(collective)});
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

bool only_some_send_in_backward(const Run& run) {
  std::vector<std::vector<Backward>> passes;
  for (const auto& rank : run.ranks) passes.push_back(backwards(rank));
  const auto any = [&](size_t pass, const auto& does) {
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      if (pass < passes[rank].size() && does(run.ranks[rank], passes[rank][pass])) return true;
    }
    return false;
  };
  const auto sends = [](const RankSeen& rank, const Backward& pass) {
    return sends_between(rank, pass.begin, pass.end);
  };
  size_t most = 0;
  for (const auto& of_rank : passes) most = std::max(most, of_rank.size());
  for (size_t pass = 0; pass < most; ++pass) {
    if (any(pass, sends) && any(pass, steps_without_sending)) return true;
  }
  return false;
}

bool only_reduces(const Run& run, size_t step) {
  return std::ranges::all_of(run.ranks, [&](const RankSeen& rank) {
    const auto steps = gradient_messages(rank);
    return step < steps.size() && !steps[step].messages.empty() &&
           std::ranges::all_of(steps[step].messages, [](const GradientMessage& message) {
             return static_cast<CollectiveKind>(message.seen->call.op_type) ==
                    CollectiveKind::reduce;
           });
  });
}

namespace {

// The messages of a step, and what parameters there are for them: no message tells those of a few
// elements from a loss.
struct StepOfRank {
  GradientMessages sent;
  size_t parameters = 0;
  uint64_t elements = 0;
};

std::optional<StepOfRank> step_of(const RankSeen& rank, size_t step) {
  auto steps = gradient_messages(rank);
  if (step >= steps.size()) return std::nullopt;
  StepOfRank seen{.sent = std::move(steps[step])};
  for (const auto& parameter : rank.parameters) {
    if (parameter.elements <= kFew) continue;
    ++seen.parameters;
    seen.elements += parameter.elements;
  }
  return seen;
}

}  // namespace

bool leaves_some_behind(const Run& run, size_t step) {
  return std::ranges::any_of(run.ranks, [&](const RankSeen& rank) {
    const auto seen = step_of(rank, step);
    return seen && seen->sent.reduced() > 0 && seen->sent.reduced() < seen->elements;
  });
}

bool sends_each_alone(const Run& run, size_t step) {
  return std::ranges::all_of(run.ranks, [&](const RankSeen& rank) {
    const auto seen = step_of(rank, step);
    return seen && seen->parameters > 1 && seen->sent.messages.size() == seen->parameters &&
           seen->sent.reduced() == seen->elements &&
           std::ranges::all_of(seen->sent.messages, &GradientMessage::in_backward);
  });
}

bool sends_less_than_first(const Run& run, size_t step) {
  return std::ranges::any_of(run.ranks, [&](const RankSeen& rank) {
    const auto steps = gradient_messages(rank);
    return step < steps.size() && steps[step].sent() < steps.front().sent();
  });
}

const CollectiveSeen* summed_once_more(const RankSeen& rank, size_t step) {
  const auto steps = gradient_messages(rank);
  if (step >= steps.size()) return nullptr;
  uint64_t in_backward = 0;
  const CollectiveSeen* after = nullptr;
  for (const auto& message : steps[step].messages) {
    if (!message.reduces()) continue;
    if (message.in_backward) in_backward += message.seen->call.elements;
    if (!message.in_backward && !after) after = message.seen;
  }
  // Messages of a few numbers are not looked at, so this may be less than the model.
  return 2 * in_backward > elements_of_model(rank) ? after : nullptr;
}

std::optional<size_t> giver_of_gradients(const Run& run, const ExpectedWorld& truth, size_t step,
                                         double tolerance) {
  std::optional<size_t> giver;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    if (step >= run.ranks[rank].steps.size() || step >= truth.ranks[rank].steps.size()) return {};
    const auto& seen = truth.ranks[rank].steps[step];
    if (!giver && seen.known && seen.local < tolerance) giver = rank;
  }
  if (!giver || run.ranks.size() < 2) return std::nullopt;
  const auto& given = run.ranks[*giver].steps[step].gradients;
  const bool all_have = std::ranges::all_of(
      run.ranks, [&](const RankSeen& rank) { return rank.steps[step].gradients == given; });
  return all_have ? giver : std::nullopt;
}

bool sends_before_training(const Run& run) {
  return std::ranges::any_of(run.ranks, [](const RankSeen& rank) {
    const size_t end = first_batch(rank);
    return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& collective) {
      return collective.event < end && collective.call.elements > kFew;
    });
  });
}

size_t broadcasts_before_training(const RankSeen& rank) {
  const size_t end = first_batch(rank);
  return static_cast<size_t>(
      std::ranges::count_if(rank.collectives, [&](const CollectiveSeen& collective) {
        return collective.event < end &&
               static_cast<CollectiveKind>(collective.call.op_type) == CollectiveKind::broadcast;
      }));
}

bool sends_after_steps(const Run& run) {
  return std::ranges::any_of(run.ranks, [](const RankSeen& rank) {
    const uint64_t model = elements_of_model(rank);
    return std::ranges::any_of(rank.steps, [&](const StepSeen& step) {
      const auto next = std::ranges::find_if(
          rank.forwards, [&](const ForwardSeen& forward) { return forward.event > step.event; });
      const size_t end = next == rank.forwards.end() ? SIZE_MAX : next->event;
      uint64_t sent = 0;
      for (const auto& collective : rank.collectives) {
        if (step.event < collective.event && collective.event < end) {
          sent += collective.call.elements;
        }
      }
      return sent > model / 2;
    });
  });
}

}  // namespace checker::rules
