#include "judge/phases.hpp"

#include <algorithm>

#include "judge/departure.hpp"

namespace checker {

namespace {

// What a rank came past that all ranks come past: calls, and the splits that it went through.
struct Milestone {
  Kind kind;
  uint64_t split = 0;
  bool operator==(const Milestone&) const = default;
};

using Milestones = std::vector<Milestone>;

// What blame tables call them.
constexpr const char *kPrint0 = "call.print0", *kSave0 = "call.save0";

constexpr Milestone kPrint{Kind::printed}, kSave{Kind::saved};
constexpr Milestone kValidation{Kind::fetch, static_cast<uint64_t>(Split::validation)};
constexpr Milestone kTest{Kind::fetch, static_cast<uint64_t>(Split::test)};

Milestones milestones_of(const RankSeen& rank) {
  Milestones all;
  for (const auto& event : rank.log.events) {
    Milestone next{event.kind};
    if (event.kind == Kind::fetch) {
      next.split = event.head<uint64_t>().value_or(0);
      if (!all.empty() && all.back() == next) continue;  // another batch of the same pass
    } else if (event.kind != Kind::printed && event.kind != Kind::saved) {
      continue;
    }
    all.push_back(next);
  }
  return all;
}

std::optional<std::string> feature_of(const Milestones& milestones, size_t at) {
  if (at >= milestones.size()) return std::nullopt;
  if (milestones[at].kind == Kind::printed) return kPrint0;
  if (milestones[at].kind == Kind::saved) return kSave0;
  return std::nullopt;
}

// print0 follows each evaluation. How often a rank went on, or home, without it.
int64_t evaluations_unprinted(const Milestones& all, bool went_home) {
  int64_t unprinted = 0;
  for (size_t at = 0; at < all.size(); ++at) {
    if (all[at] != kValidation && all[at] != kTest) continue;
    const bool last = at + 1 == all.size();
    if (last ? went_home : all[at + 1] != kPrint) ++unprinted;
  }
  return unprinted;
}

bool saves_after_the_test(const Milestones& all) {
  const auto test = std::ranges::find(all, kTest);
  return std::find(test, all.end(), kSave) != all.end();
}

// The last that one rank does is to save, where another has the test before it.
bool saves_in_place_of_the_test(const Milestones& one, const Milestones& other) {
  const auto [mine, theirs] = std::ranges::mismatch(one, other);
  return mine != one.end() && mine + 1 == one.end() && *mine == kSave && theirs != other.end() &&
         *theirs == kTest;
}

}  // namespace

namespace {

// Where in the training an evaluation stands: after so many batches.
struct EvaluationPlace {
  size_t trained = 0;
  Split split = Split::train;
  bool operator==(const EvaluationPlace&) const = default;
};

struct RankCourse {
  std::vector<EvaluationPlace> evaluations;
  size_t trained = 0;
};

RankCourse course_of(const RankSeen& rank) {
  RankCourse course;
  for (const auto& pass : rank.passes) {
    if (pass.training) {
      course.trained += pass.batches.size();
    } else {
      course.evaluations.push_back({course.trained, pass.split});
    }
  }
  return course;
}

bool passes_by(const RankCourse& rank, const EvaluationPlace& place) {
  if (std::ranges::find(rank.evaluations, place) != rank.evaluations.end()) return false;
  const auto tested = [&](const EvaluationPlace& own) {
    return own.trained >= place.trained && own.split == Split::test;
  };
  return rank.trained > place.trained || std::ranges::any_of(rank.evaluations, tested);
}

// One rank tests, and another has trained and validated as often and goes home.
bool test_by_some_ranks(const Run& run) {
  const auto tests = [](const RankSeen& rank) { return !rank.evaluations(Split::test).empty(); };
  const auto tester = std::ranges::find_if(run.ranks, tests);
  if (tester == run.ranks.end()) return false;
  return std::ranges::any_of(run.ranks, [&](const RankSeen& rank) {
    return has_left(rank) && !tests(rank) &&
           rank.trainings().size() == tester->trainings().size() &&
           rank.evaluations(Split::validation).size() ==
               tester->evaluations(Split::validation).size();
  });
}

}  // namespace

std::optional<std::string> first_evaluation_not_shared(const Run& run) {
  std::vector<RankCourse> courses;
  for (const auto& rank : run.ranks) courses.push_back(course_of(rank));
  std::optional<EvaluationPlace> first;
  for (const auto& mine : courses) {
    for (const auto& place : mine.evaluations) {
      if (place.split != Split::validation || (first && first->trained <= place.trained)) continue;
      if (std::ranges::any_of(courses, [&](const RankCourse& c) { return passes_by(c, place); }))
        first = place;
    }
  }
  if (first) return "validation_by_some_ranks";
  return test_by_some_ranks(run) ? std::optional<std::string>("test_by_some_ranks") : std::nullopt;
}

std::optional<std::string> first_call_left_out(const Run& run) {
  std::vector<Milestones> all;
  for (const auto& rank : run.ranks) all.push_back(milestones_of(rank));
  const auto any = [&](const auto& is) { return std::ranges::any_of(all, is); };
  const auto calls_of = [](const Milestones& one) { return std::ranges::count(one, kPrint); };
  const bool prints = any([&](const Milestones& one) { return calls_of(one) > 0; });
  for (size_t number = 0; number < all.size(); ++number) {
    const auto& rank = run.ranks[number];
    const auto& own = all[number];
    // Who never calls print0 prints in a way of his own, unless it is seen once only: then that
    // place is the nearest to blame.
    const bool went_home = has_left(rank) && !rank.shutdown_event;
    const auto unprinted = evaluations_unprinted(own, went_home);
    // Where no rank calls it more often, there is no call that this one has left out.
    const bool fewer =
        any([&](const Milestones& other) { return calls_of(other) > calls_of(own); });
    if (prints ? unprinted > 0 && fewer : unprinted == 1) return kPrint0;
    const auto misses_the_test = [&](const Milestones& other) {
      return saves_in_place_of_the_test(own, other);
    };
    if ((went_home || rank.shutdown_event) && any(misses_the_test)) return kPrint0;
    const bool tested = std::ranges::find(own, kTest) != own.end();
    if (went_home && tested && !saves_after_the_test(own) && any(saves_after_the_test)) {
      return kSave0;
    }
  }
  return std::nullopt;
}

std::optional<std::string> first_call_not_shared(const Run& run) {
  if (run.ranks.empty()) return std::nullopt;
  const auto first = milestones_of(run.ranks[0]);
  for (size_t rank = 1; rank < run.ranks.size(); ++rank) {
    const auto other = milestones_of(run.ranks[rank]);
    const auto parted =
        static_cast<size_t>(std::ranges::mismatch(first, other).in1 - first.begin());
    if (const auto mine = feature_of(first, parted)) return mine;
    if (const auto theirs = feature_of(other, parted)) return theirs;
  }
  return std::nullopt;
}

namespace {

using Mark = instrumentation::Phase;

bool is_test(const instrumentation::PhaseRecord& mark) {
  return mark.phase == Mark::evaluation && mark.split == static_cast<uint32_t>(Split::test);
}

bool tested_before(const RankSeen& rank, size_t event) {
  return std::ranges::any_of(rank.phases, [&](const PhaseSeen& phase) {
    return phase.event < event && is_test(phase.mark);
  });
}

// ended: nothing runs since, so far.
Phase phase_of(const instrumentation::PhaseRecord& mark, bool ended) {
  if (mark.phase == Mark::checkpoint) return Phase::checkpointing;
  if (mark.phase == Mark::optimizer && ended) return Phase::after_step;
  if (mark.phase != Mark::evaluation) return Phase::training;
  if (!ended) return Phase::evaluating;
  return is_test(mark) ? Phase::closing : Phase::reporting;
}

}  // namespace

Phase phase_at(const RankSeen& rank, size_t event) {
  if (rank.shutdown_event && *rank.shutdown_event < event) return Phase::leaving;
  const auto& events = rank.log.events;
  bool ended = false;
  for (size_t i = std::min(event, events.size()); i-- > 0;) {
    switch (events[i].kind) {
      case Kind::reported:
        return tested_before(rank, i) ? Phase::closing : Phase::reporting;
      case Kind::printed:
        return tested_before(rank, i) ? Phase::closing : Phase::saving;
      case Kind::saved:
        return tested_before(rank, i) ? Phase::leaving : Phase::saving;
      case Kind::phase: {
        const auto mark = events[i].head<instrumentation::PhaseRecord>();
        if (!mark || mark->phase > Mark::none) break;
        if (mark->phase < Mark::none) return phase_of(*mark, ended);
        ended = true;
        break;
      }
      default:
        break;
    }
  }
  return rank.groups.empty() ? Phase::joining : Phase::preparing;
}

std::string name_of(Phase phase) {
  switch (phase) {
    case Phase::joining:
      return "phase.joining";
    case Phase::preparing:
      return "phase.preparing";
    case Phase::training:
      return "phase.training";
    case Phase::after_step:
      return "phase.after_step";
    case Phase::checkpointing:
      return "phase.checkpointing";
    case Phase::evaluating:
      return "phase.evaluating";
    case Phase::reporting:
      return "phase.reporting";
    case Phase::saving:
      return "phase.saving";
    case Phase::closing:
      return "phase.closing";
    case Phase::leaving:
      return "phase.leaving";
  }
  return "";
}

}  // namespace checker
