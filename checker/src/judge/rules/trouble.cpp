#include <algorithm>
#include <optional>

#include "judge/collectives.hpp"
#include "judge/divergence.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

std::string doing(Phase phase) {
  switch (phase) {
    case Phase::joining:
      return "before or inside setup()";
    case Phase::preparing:
      return "between setup() and the first batch";
    case Phase::training:
      return "in training";
    case Phase::checkpointing:
      return "in a checkpoint";
    case Phase::evaluating:
      return "in evaluation";
    case Phase::reporting:
    case Phase::saving:
      return "after an evaluation, printing or saving";
    case Phase::closing:
    case Phase::leaving:
      return "near its end";
  }
  return "";
}

// The last line of what a rank said of its own failure.
std::string last_words(const RankSeen& rank) {
  for (size_t i = rank.errors.size(); i-- > 0;) {
    const auto at = rank.errors[i].find("error: ");
    if (at != std::string::npos) return rank.errors[i].substr(at + 7, 300);
  }
  return rank.errors.empty() ? "" : rank.errors.back().substr(0, 300);
}

// A rank that failed only because another was gone.
bool is_victim(const RankSeen& rank) {
  const auto words = last_words(rank);
  return words.find("onnection") != std::string::npos || words.find("peer") != std::string::npos ||
         words.find("imed out") != std::string::npos;
}

// One that was still about to leave when the run was ended counts as well.
bool has_left(const RankSeen& rank) {
  return rank.left_regularly && (rank.result.exit.success() || rank.result.ended_by_us);
}

class Trouble {
 public:
  Trouble(const Scene& scene, Findings& findings)
      : scene_(scene), run_(scene.run()), findings_(findings) {}

  void judge() {
    if (run_.result.success()) return;
    if (scene_.trial.stall == Stall::busy || scene_.trial.stall == Stall::too_long) {
      return endless();
    }
    if (run_.result.stopped) return waiting();
    if (const auto rank = first_that_died()) return died(*rank);
    waiting();
  }

  // What became of the run, as evidence beside another finding.
  std::vector<std::string> aftermath() const {
    if (run_.result.stopped) {
      auto lines = states();
      lines.insert(lines.begin(), "After that the run made no progress:");
      return lines;
    }
    const auto rank = first_that_died();
    if (!rank) return {};
    const auto& seen = run_.ranks[*rank];
    std::vector<std::string> lines{"After that rank " + std::to_string(*rank) + " died " +
                                   doing(last_phase(seen)) + ": " + seen.result.exit.describe() +
                                   "."};
    if (const auto words = last_words(seen); !words.empty()) lines.push_back("It said: " + words);
    return lines;
  }

 private:
  // Where each rank stands.
  std::vector<std::string> states() const {
    std::vector<std::string> lines;
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) lines.push_back(state_of(rank));
    return lines;
  }

  // One that failed by itself, rather than by another's going.
  std::optional<size_t> first_that_died() const {
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      const auto& seen = run_.ranks[rank];
      const bool failed = !seen.result.exit.success() && !seen.result.ended_by_us;
      if (failed && !is_victim(seen)) return rank;
    }
    return std::nullopt;
  }

  std::string state_of(size_t rank) const {
    const auto& seen = run_.ranks[rank];
    const auto name = "rank " + std::to_string(rank);
    if (const auto* collective = waiting_in(seen); collective && !has_left(seen)) {
      return name + " waits in " + describe_at(scene_, rank, *collective);
    }
    if (has_left(seen)) return name + " has left the program";
    if (seen.result.exit.success() && !seen.result.ended_by_us) return name + " has ended";
    return name + " is in no collective; last seen " + doing(last_phase(seen));
  }

  bool waits_in(size_t rank, const CollectiveSeen* collective) const {
    return waiting_in(run_.ranks[rank]) == collective;
  }

  static Phase last_phase(const RankSeen& rank) { return phase_at(rank, rank.log.events.size()); }

  // Where a rank was when it left. After the last epoch that is the program's end, come too early.
  Phase phase_of_leaving(const RankSeen& rank) const {
    const bool trained = rank.passes_over(Split::validation).size() == scene_.plan.epochs;
    return rank.shutdown_event || trained ? Phase::leaving : last_phase(rank);
  }

  // The rank whose place tells which TODO it is: the one that the student's step is about. A call
  // that was left out comes first; one that left is the reason why others wait.
  int blame() const {
    std::vector<int> candidates;
    if (const auto feature = first_call_left_out(run_)) {
      candidates.push_back(scene_.blame({*feature}));
    }
    for (const auto& rank : run_.ranks) {
      if (has_left(rank)) candidates.push_back(blame_for(scene_, phase_of_leaving(rank)));
    }
    if (const auto feature = first_call_not_shared(run_)) {
      candidates.push_back(scene_.blame({*feature}));
    }
    const auto add = [&](const RankSeen& rank) {
      const auto* collective = waiting_in(rank);
      const auto phase = collective ? phase_at(rank, collective->event) : last_phase(rank);
      candidates.push_back(blame_for(scene_, phase));
    };
    for (const auto& rank : run_.ranks) {
      if (waiting_in(rank)) add(rank);
    }
    for (const auto& rank : run_.ranks) add(rank);
    for (const int todo : candidates) {
      if (std::ranges::find(scene_.step.todos, todo) != scene_.step.todos.end()) return todo;
    }
    return candidates.front();
  }

  void waiting() {
    auto evidence = states();
    evidence.insert(evidence.begin(), scene_.where() + ":");
    std::string where;
    for (size_t rank = 0; rank < run_.ranks.size() && where.empty(); ++rank) {
      const auto* collective = waiting_in(run_.ranks[rank]);
      if (collective) where = scene_.locate(run_.ranks[rank], *collective);
    }
    const auto mismatch = find_mismatch(run_, false);
    if (mismatch) {
      if (!waits_in(mismatch->rank_a, mismatch->a) || !waits_in(mismatch->rank_b, mismatch->b)) {
        evidence.emplace_back("the first that do not fit together:");
        for (auto& line : in_words(scene_, *mismatch)) evidence.push_back(std::move(line));
      }
      findings_.push_back(
          {blame(), "ranks_meet_in_different_collectives",
           "The ranks wait in collectives that do not fit together (they differ in their " +
               difference(*mismatch->a, *mismatch->b) + "); none can go on.",
           "Every rank must issue the same collectives in the same order. Look for one that only "
           "some "
           "ranks reach, or reach at another time.",
           evidence, where, FindingKind::crash});
      return;
    }
    const bool any = std::ranges::any_of(run_.ranks, waiting_in);
    const bool gone =
        std::ranges::any_of(run_.ranks, [](const RankSeen& rank) { return rank.left_regularly; });
    findings_.push_back(
        {blame(),
         !any   ? "stands_still"
         : gone ? "rank_left_early"
                : "ranks_wait_for_each_other",
         !any   ? "The program stands still, in no collective."
         : gone ? "A rank has left while others still wait for it."
                : "The ranks wait for each other and nothing goes on.",
         "A collective ends only when every rank of its group has called it. Look for one under a "
         "condition that is not true on every rank, or for a rank that leaves a loop early.",
         evidence, where, FindingKind::crash});
  }

  void endless() {
    findings_.push_back({blame(), "no_end", "The program goes on and on without getting anywhere.",
                         "Something repeats without end, or does far more work than the exercise.",
                         states(), "", FindingKind::crash});
  }

  void died(size_t rank) {
    const auto& seen = run_.ranks[rank];
    const auto phase = last_phase(seen);
    std::string what = "Rank " + std::to_string(rank) + " dies " + doing(phase) + ": " +
                       seen.result.exit.describe() + ".";
    std::vector<std::string> evidence = {scene_.where()};
    if (const auto words = last_words(seen); !words.empty())
      evidence.push_back("it said: " + words);
    const auto mismatch = find_mismatch(run_, false);
    if (mismatch) {
      for (auto& line : in_words(scene_, *mismatch)) evidence.push_back(std::move(line));
    }
    if (!mismatch && seen.shutdown_event) return died_after_leaving(rank, evidence);
    const int todo = mismatch ? blame() : blame_for(scene_, phase);
    findings_.push_back({todo, mismatch ? "dies_of_mismatched_collectives" : "dies", what,
                         mismatch
                             ? "Its collective does not fit the other ranks': kind, size, type, "
                               "op, root and order must be the same on all."
                             : "The program must reach its end on every rank.",
                         evidence, "", FindingKind::crash});
  }

  void died_after_leaving(size_t rank, const std::vector<std::string>& evidence) {
    findings_.push_back({scene_.blame({feature::destroy, feature::setup}), "work_after_leaving",
                         "The process group is destroyed before all work is done; then rank " +
                             std::to_string(rank) + " dies.",
                         "Samplers, gradients and losses need the group. Call "
                         "destroy_process_group() last, on every rank.",
                         evidence, "", FindingKind::crash});
  }

  const Scene& scene_;
  const Run& run_;
  Findings& findings_;
};

}  // namespace

void trouble(const Scene& scene, Findings& findings) { Trouble(scene, findings).judge(); }

void aftermath(const Scene& scene, Findings& findings) {
  if (findings.empty() || scene.run().result.success()) return;
  for (auto& line : Trouble(scene, findings).aftermath()) {
    findings.front().evidence.push_back(std::move(line));
  }
}

}  // namespace checker::rules
