#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "judge/collectives.hpp"
#include "judge/departure.hpp"
#include "judge/phases.hpp"
#include "judge/rules/gradient_crash.hpp"
#include "judge/rules/gradient_messages.hpp"
#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

class Trouble {
 public:
  explicit Trouble(const RunContext& context) : context_(context), run_(context.run()) {}

  std::optional<Symptom> judge() const {
    if (run_.result.success()) return std::nullopt;
    if (context_.recorded.stall == Stall::busy || context_.recorded.stall == Stall::too_long) {
      return crash("no_end", states());
    }
    if (run_.result.stopped) return waiting();
    if (const auto rank = first_that_died()) return died(*rank);
    return waiting();
  }

  // What became of the run, as evidence beside another finding.
  std::vector<EvidenceLine> aftermath() const {
    if (run_.result.stopped) {
      auto lines = states();
      lines.insert(lines.begin(), {"no_progress", {}});
      return lines;
    }
    const auto rank = first_that_died();
    if (!rank) return {};
    const auto& seen = run_.ranks[*rank];
    std::vector<EvidenceLine> lines{
        {"then_died",
         {{"rank", *rank}, {"doing", doing(seen)}, {"how", seen.result.exit.describe()}}}};
    add_last_words(seen, "it_said", lines);
    return lines;
  }

 private:
  Symptom crash(std::string id, std::vector<EvidenceLine> evidence) const {
    return {.id = std::move(id),
            .values = context_.values(),
            .evidence = std::move(evidence),
            .blame = blame(),
            .kind = FindingKind::crash};
  }

  static void add_last_words(const RankSeen& rank, const char* line,
                             std::vector<EvidenceLine>& lines) {
    if (const auto words = last_words(rank); !words.empty())
      lines.push_back({line, {{"words", words}}});
  }

  // The system ended it, or the C library, which says so; an exception that nobody caught aborts as
  // well, and has a better reason.
  static bool died_of_memory(const RankSeen& rank) {
    const int signal = rank.result.exit.signal;
    if (signal == SIGSEGV || signal == SIGBUS) return true;
    constexpr std::array kCheckers{"free():", "munmap_chunk():", "malloc", "corrupt", "realloc"};
    const auto words = last_words(rank);
    return signal == SIGABRT && std::ranges::any_of(kCheckers, [&](const char* checker) {
             return words.find(checker) != std::string::npos;
           });
  }

  // Where each rank stands.
  std::vector<EvidenceLine> states() const {
    std::vector<EvidenceLine> lines;
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

  EvidenceLine state_of(size_t rank) const {
    const auto& seen = run_.ranks[rank];
    if (const auto* collective = waiting_in(seen); collective && !has_left(seen)) {
      return seen_call(context_, "waits", rank, *collective);
    }
    if (has_left(seen)) return {"has_left", {{"rank", rank}}};
    if (seen.result.exit.success() && !seen.result.ended_by_us)
      return {"has_ended", {{"rank", rank}}};
    return {"in_no_collective", {{"rank", rank}, {"doing", doing(seen)}}};
  }

  bool waits_in(size_t rank, const CollectiveSeen* collective) const {
    return waiting_in(run_.ranks[rank]) == collective;
  }

  // Where a rank was before it left, if it left because it was failing.
  Phase last_phase(const RankSeen& rank) const {
    const bool failing = rank.shutdown_event && !rank.result.exit.success() &&
                         !worked_after_leaving(rank) && !has_trained(rank);
    return phase_at(rank, failing ? *rank.shutdown_event : rank.log.events.size());
  }

  Value doing(const RankSeen& rank) const {
    const bool left_early = worked_after_leaving(rank) && !has_trained(rank);
    return phrase(left_early ? "left_the_group" : name_of(last_phase(rank)));
  }

  bool has_trained(const RankSeen& rank) const {
    const auto validations = rank.evaluations(Split::validation);
    return !validations.empty() &&
           validations.back()->epoch == rules::epochs_to_train(context_, rank);
  }

  // Where a rank was when it left. After the last epoch that is the program's end, come too early.
  Phase phase_of_leaving(const RankSeen& rank) const {
    return rank.shutdown_event || has_trained(rank) ? Phase::leaving : last_phase(rank);
  }

  // The places that tell which TODO it is. A call that was left out comes first; one that left is
  // the reason why others wait.
  std::vector<std::string> blame() const {
    std::vector<std::string> entries;
    if (context_.expects("HOOKS") && only_some_send_in_backward(run_)) {
      entries.emplace_back("phase.backward_of_some_ranks");
    }
    if (const auto evaluation = first_evaluation_not_shared(run_)) entries.push_back(*evaluation);
    if (const auto call = first_call_left_out(run_)) entries.push_back(*call);
    for (const auto& rank : run_.ranks) {
      if (has_left(rank)) entries.push_back(name_of(phase_of_leaving(rank)));
    }
    if (const auto call = first_call_not_shared(run_)) entries.push_back(*call);
    const auto add = [&](const RankSeen& rank) {
      const auto* collective = waiting_in(rank);
      entries.push_back(name_of(collective ? phase_at(rank, collective->event) : last_phase(rank)));
    };
    for (const auto& rank : run_.ranks) {
      if (waiting_in(rank)) add(rank);
    }
    for (const auto& rank : run_.ranks) add(rank);
    return entries;
  }

  // The line of code of the first waiting rank whose line is known.
  std::string where() const {
    for (const auto& rank : run_.ranks) {
      const auto* collective = waiting_in(rank);
      const auto place = collective ? context_.locate(rank, *collective) : "";
      if (!place.empty()) return place;
    }
    return "";
  }

  // The calls that match may be other ones: where the ranks parted before the mismatch.
  void add_parting(const std::optional<Mismatch>& mismatch,
                   std::vector<EvidenceLine>& evidence) const {
    const auto parting = find_parting(run_);
    if (!parting || (mismatch && parting->sequence >= mismatch->sequence)) return;
    evidence.push_back({"first_apart", {}});
    for (auto& line : seen_of(context_, *parting)) evidence.push_back(std::move(line));
  }

  Symptom waiting() const {
    auto evidence = states();
    evidence.insert(evidence.begin(), {"in_a_world", {}});
    Symptom symptom;
    if (const auto mismatch = find_mismatch(run_, false)) {
      if (!waits_in(mismatch->rank_a, mismatch->a) || !waits_in(mismatch->rank_b, mismatch->b)) {
        evidence.push_back({"first_misfit", {}});
        for (auto& line : seen_of(context_, *mismatch)) evidence.push_back(std::move(line));
      }
      add_parting(mismatch, evidence);
      symptom = crash("ranks_meet_in_different_collectives", std::move(evidence));
      symptom.variant = difference(*mismatch->a, *mismatch->b);
      symptom.values["difference"] = symptom.variant;
    } else {
      const bool any = std::ranges::any_of(run_.ranks, waiting_in);
      const bool gone =
          std::ranges::any_of(run_.ranks, [](const RankSeen& rank) { return rank.left_regularly; });
      symptom = crash(!any   ? "stands_still"
                      : gone ? "rank_left_early"
                             : "ranks_wait_for_each_other",
                      std::move(evidence));
      const bool plain = context_.step.kind == ProgramKind::plain;
      if (plain && any && gone) add_not_awaited(symptom);
    }
    symptom.where = where();
    return symptom;
  }

  // What a rank that has ended may have taken with it.
  void add_not_awaited(Symptom& symptom) const {
    for (const auto& rank : run_.ranks) {
      const auto* call = rank.left_regularly ? not_awaited(rank) : nullptr;
      if (!call) continue;
      symptom.variant = "not_awaited";
      symptom.evidence.push_back(seen_call(context_, "not_awaited", rank.place.rank, *call));
      return;
    }
  }

  Symptom died(size_t rank) const {
    const auto& seen = run_.ranks[rank];
    const auto phase = last_phase(seen);
    std::vector<EvidenceLine> evidence;
    add_last_words(seen, "it_said_small", evidence);
    evidence.push_back({"world", {}});
    const auto mismatch = find_mismatch(run_, false);
    if (mismatch) {
      for (auto& line : seen_of(context_, *mismatch)) evidence.push_back(std::move(line));
      add_parting(mismatch, evidence);
    }
    Symptom symptom =
        crash(mismatch ? "dies_of_mismatched_collectives" : "dies", std::move(evidence));
    symptom.values["rank"] = rank;
    symptom.values["doing"] = doing(seen);
    symptom.values["how"] = seen.result.exit.describe();
    if (!mismatch) symptom.blame = {name_of(phase)};
    if (!mismatch && died_of_memory(seen)) symptom.variant = "memory";
    symptom.values["step"] = context_.step.label();
    if (!mismatch && called_setup_twice(seen) && seen.passes.empty()) {
      symptom.id = "setup_called_twice";
      symptom.blame = {"setup_called_twice"};
    } else if (!mismatch && worked_after_leaving(seen)) {
      symptom.id = "work_after_leaving";
      symptom.variant = "died";
      symptom.blame = {"work_after_leaving"};
    } else if (!mismatch && context_.expects("HOOKS")) {
      add_messages(seen, symptom);
    }
    return symptom;
  }

  // Where the program sends gradients by itself: what became of the messages of the step.
  static void add_messages(const RankSeen& rank, Symptom& symptom) {
    using Cause = GradientCrash::Cause;
    // A call through an object that is gone may also end where there is no code.
    const bool memory = died_of_memory(rank) || rank.result.exit.signal == SIGILL;
    const auto crash = gradient_crash(rank, memory);
    if (!crash) return;
    if (crash->cause == Cause::other_in_backward || crash->cause == Cause::other_behind) {
      const bool behind = crash->cause == Cause::other_behind;
      symptom.evidence.push_back({behind ? "in_finish" : "in_a_hook", {}});
      return;
    }
    symptom.id = "dies_with_gradients";
    const bool counted_on = crash->cause == Cause::no_message && crash->sent_more;
    symptom.variant = crash->cause == Cause::gradient_not_there   ? "not_there"
                      : crash->cause == Cause::memory_in_backward ? "memory"
                      : crash->cause == Cause::nothing_missing    ? "all_sent"
                      : crash->cause == Cause::gradient_gone      ? "gone"
                      : crash->cause == Cause::left_early         ? "left_early"
                      : counted_on                                ? "later"
                                                                  : "";
    const bool gone = crash->cause == Cause::gradient_gone;
    if (crash->cause != Cause::nothing_missing)
      symptom.blame = {gone ? "dies_with_gradients.gone" : "dies_with_gradients"};
    symptom.evidence.push_back(
        {"sent", {{"step", crash->step}, {"sent", crash->sent}, {"all", crash->all}}});
  }

  const RunContext& context_;
  const Run& run_;
};

}  // namespace

void trouble(const RunContext& context, Symptoms& symptoms) {
  if (auto symptom = Trouble(context).judge()) symptoms.push_back(std::move(*symptom));
}

void aftermath(const RunContext& context, Symptoms& symptoms) {
  if (symptoms.empty() || context.run().result.success()) return;
  auto& first = symptoms.front();
  for (auto& line : Trouble(context).aftermath()) first.evidence.push_back(std::move(line));
}

}  // namespace checker::rules
