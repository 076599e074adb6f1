#include <algorithm>
#include <cmath>
#include <set>

#include "judge/collectives.hpp"
#include "judge/phases.hpp"
#include "judge/rules/gradient_messages.hpp"
#include "judge/rules/gradient_reading.hpp"
#include "judge/rules/rules.hpp"
#include "judge/rules/target_mean.hpp"

namespace checker::rules {

namespace {

class Gradients {
 public:
  Gradients(const RunContext& context, Symptoms& symptoms)
      : context_(context),
        symptoms_(symptoms),
        ddp_(context.expects(feature::ddp)),
        by_hand_(context.expects(feature::broadcast)),
        targets_(context.expects(feature::target_mean) && context.world() > 1) {}

  void judge() {
    size_t steps = 0;
    for (const auto& rank : context_.truth.ranks) steps = std::max(steps, rank.steps.size());
    // Where a TODO scales them, its own rule looks at the rates.
    rates_are_judged_ = !context_.expects(feature::scaled_rate);
    rates_are_scaled_ = rates_are_judged_ && scaled_rates();
    for (size_t t = 0; t < steps; ++t) {
      if (apart(t) || wrong_gradients(t) || wrong_rates(t) || wrong_update(t)) return;
    }
  }

 private:
  std::vector<std::pair<size_t, const StepDeviations*>> at(size_t t) const {
    std::vector<std::pair<size_t, const StepDeviations*>> all;
    for (size_t rank = 0; rank < context_.truth.ranks.size(); ++rank) {
      const auto& steps = context_.truth.ranks[rank].steps;
      if (t < steps.size()) all.emplace_back(rank, &steps[t]);
    }
    return all;
  }

  bool apart(size_t t) {
    // Without DDP each rank trains a model of its own; and what a sampler of the rank's own draws
    // from the global generator changes the start as well.
    if (!ddp_ && (t > 0 || !symptoms_.empty())) return false;
    std::vector<size_t> ranks;
    double worst = 0;
    for (const auto& [rank, step] : at(t)) {
      if (step->apart <= context_.tolerance()) continue;
      ranks.push_back(rank);
      worst = std::max(worst, step->apart);
    }
    if (ranks.empty()) return false;
    // They drift apart because ranks step with different rates, which is another rule's.
    if (t > 0 && !rates_are_judged_ && rates_differ_before(t)) return true;
    const bool as_made = t == 0 && by_hand_ && !sends_before_training(context_.run());
    std::vector<EvidenceLine> evidence{{"apart", {{"ranks", ranks_value(ranks)}}}};
    if (t == 0 && by_hand_) {
      const auto& giver = context_.run().ranks.front();
      evidence.push_back(
          {"broadcasts",
           {{"sent", broadcasts_before_training(giver)}, {"tensors", giver.model.size()}}});
    }
    add({.id = t == 0 ? "different_start" : "parameters_drift_apart",
         .evidence = std::move(evidence),
         .kind = as_made ? FindingKind::not_started : FindingKind::mistake,
         .deviation = worst},
        t);
    return true;
  }

  bool rates_differ_before(size_t t) const {
    for (size_t before = 0; before < t; ++before) {
      std::vector<double> factors;
      for (const auto& [rank, step] : at(before)) factors.push_back(step->rate_factor);
      const auto [least, most] = std::ranges::minmax(factors);
      if (most - least > context_.gradient_tolerance() * most) return true;
    }
    return false;
  }

  bool wrong_gradients(size_t t) {
    std::vector<size_t> ranks;
    const StepDeviations* example = nullptr;
    for (const auto& [rank, step] : at(t)) {
      if (!step->known || deviation_of(*step, t) <= context_.gradient_tolerance()) continue;
      ranks.push_back(rank);
      // A rank that holds something telling, rather than one that is wrong by its neighbour's
      // fault.
      if (!example || read(*example, context_.world(), context_.gradient_tolerance()) == kOther)
        example = step;
    }
    if (ranks.empty()) return false;
    if (targets_) {
      auto symptom = wrong_mean_over_targets(context_, ranks, *example, t);
      const bool local = symptom.id == kLocal;
      if (!local || !partly_averaged(ranks, t)) add(std::move(symptom), t);
      return true;
    }
    auto reading = read(*example, context_.world(), context_.gradient_tolerance());
    if (!ddp_ && reading != kAccumulated && reading != kNothing) reading = kLoop;
    std::vector<EvidenceLine> evidence{
        {ddp_ ? "off_mean" : "off_batch", {{"ranks", ranks_value(ranks)}}}};
    const auto all = context_.run().ranks[ranks[0]].parameters.size();
    const auto& names = example->parameters;
    if (ddp_ && !names.empty() && names.size() < all) {
      std::string list;
      for (size_t i = 0; i < std::min<size_t>(names.size(), 4); ++i) {
        list += (i > 0 ? ", " : "") + names[i];
      }
      evidence.push_back({"only_these", {{"names", list + (names.size() > 4 ? " ..." : "")}}});
      if (reading == kOther) reading = kSome;
    }
    const bool unclear = reading == kOther || reading == kSome;
    if (by_hand_ && unclear && is_scaled(*example, context_.gradient_tolerance())) {
      const auto [least, most] = std::ranges::minmax(example->multiples);
      reading = kScaled;
      evidence.push_back({"times_mean", {{"least", digits(least)}, {"most", digits(most)}}});
    }
    const auto giver =
        ddp_ ? giver_of_gradients(context_.run(), context_.truth, t, context_.gradient_tolerance())
             : std::nullopt;
    if (giver) reading = kLocal;
    if (ddp_ && (reading == kLocal || reading == kOther) && partly_averaged(ranks, t)) return true;
    const auto* again = reading == kSum && !by_hand_ && !context_.expects(feature::fsdp)
                            ? summed_once_more(context_.run().ranks[ranks[0]], t)
                            : nullptr;
    if (again) evidence.push_back(seen_call(context_, "again", ranks[0], *again));
    const bool local = reading == kLocal, silent = local && !talks_about_gradients();
    const bool late = silent && by_hand_ && sends_after_steps(context_.run());
    const bool to_one = local && by_hand_ && only_reduces(context_.run(), t);
    const bool later = reading == kOther && by_hand_ && t > 0;
    const bool not_sent = later && sends_less_than_first(context_.run(), t);
    const bool alone =
        by_hand_ && (reading == kSome || reading == kOther) && sends_each_alone(context_.run(), t);
    const bool left_behind = by_hand_ && reading == kSome && leaves_some_behind(context_.run(), t);
    add({.id = std::string(reading),
         .values = giver ? Values{{"giver", *giver}} : Values{},
         .evidence = std::move(evidence),
         .variant = giver                          ? "of_one_rank"
                    : again                        ? "averaged_before"
                    : late                         ? "after_the_step"
                    : to_one                       ? "to_one_rank"
                    : local && talks_in_training() ? "exchanged"
                    : not_sent                     ? "not_sent"
                    : alone                        ? "alone"
                    : left_behind                  ? "left_behind"
                    : later                        ? "later"
                                                   : "",
         .blame = by_hand_ && (silent || to_one || giver)
                      ? std::vector<std::string>{"gradients_not_averaged.at_all"}
                  : not_sent ? std::vector<std::string>{"gradients_wrong.not_sent"}
                             : std::vector<std::string>{},
         .kind = silent && !late && !giver ? FindingKind::not_started : FindingKind::mistake,
         .deviation = deviation_of(*example, t)},
        t);
    return true;
  }

  // From what they must be. Where the model normalises over the batches of all ranks, that is what
  // one process computes, which is the mean over targets.
  double deviation_of(const StepDeviations& step, size_t t) const {
    if (!ddp_) return step.local;
    const double mean = targets_ ? step.target_mean : step.mean;
    if (step.together >= mean || targets_) return std::min(mean, step.together);
    const auto counts = targets_of_step(context_.run(), t);
    const bool alike = std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end();
    return alike ? step.together : mean;
  }

  // Over some ranks only, or in some steps only; adds what was seen.
  bool partly_averaged(const std::vector<size_t>& ranks, size_t t) {
    const auto& step = context_.truth.ranks[ranks[0]].steps[t];
    if (step.mean_over.size() > 1) {
      add({.id = "gradients_averaged_over_some_ranks",
           .evidence = {{"mean_of", {{"rank", ranks[0]}, {"group", ranks_value(step.mean_over)}}}},
           .deviation = step.mean},
          t);
      return true;
    }
    size_t apart = 0, all = 0;
    for (const auto& other : context_.truth.ranks[ranks[0]].steps) {
      if (!other.known) continue;
      ++all;
      if (other.mean > context_.gradient_tolerance()) ++apart;
    }
    if (step.mean_over.empty() || apart == all) return false;
    add({.id = "gradients_averaged_in_some_steps",
         .evidence = {{"steps_apart", {{"apart", apart}, {"all", all}}}},
         .deviation = step.mean},
        t);
    return true;
  }

  // Before anything is averaged the ranks need not talk; whoever makes the wrapper, they do. Where
  // it is made by hand, they have talked about other things before.
  bool talks_about_gradients() const {
    if (by_hand_) return sends_gradients(context_.run());
    return std::ranges::any_of(context_.run().ranks,
                               [](const RankSeen& rank) { return !rank.collectives.empty(); });
  }

  // Whether ranks exchange something while they train, which then is not what the step needs.
  bool talks_in_training() const {
    if (by_hand_) return sends_gradients(context_.run());
    const auto& rank = context_.run().ranks.front();
    return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& collective) {
      const auto phase = phase_at(rank, collective.event);
      return phase == Phase::training || phase == Phase::after_step;
    });
  }

  // Many scale the rate with the number of ranks; whether that is right, a teacher decides.
  bool scaled_rates() {
    const double world = static_cast<double>(context_.world());
    std::set<double> factors;
    for (const auto& rank : context_.truth.ranks) {
      for (const auto& step : rank.steps) factors.insert(step.rate_factor);
    }
    if (factors.empty() || context_.world() == 1) return false;
    const auto all_are = [&](double factor) {
      return std::abs(*factors.begin() / factor - 1) <= context_.gradient_tolerance() &&
             std::abs(*factors.rbegin() / factor - 1) <= context_.gradient_tolerance();
    };
    const bool root = all_are(std::sqrt(world));
    if (!root && !all_are(world)) return false;
    add({.id = "learning_rate_scaled",
         .evidence = {{"scaled", {{"factor", digits(*factors.begin())}}}},
         .variant = root ? "root" : "",
         .kind = FindingKind::note},
        0);
    return true;
  }

  bool wrong_rates(size_t t) {
    if (rates_are_scaled_ || !rates_are_judged_) return false;
    for (const auto& [rank, step] : at(t)) {
      if (step->rates <= context_.tolerance()) continue;
      add({.id = "learning_rate_not_the_schedules",
           .evidence = {{"off_by", {{"rank", rank}}}},
           .deviation = step->rates},
          t);
      return true;
    }
    return false;
  }

  bool wrong_update(size_t t) {
    for (const auto& [rank, step] : at(t)) {
      if (step->update <= context_.tolerance()) continue;
      add({.id = "parameters_changed_beside_the_optimizer",
           .evidence = {{"off_by", {{"rank", rank}}}},
           .deviation = step->update},
          t);
      return true;
    }
    return false;
  }

  void add(Symptom symptom, size_t t) {
    symptom.values.merge(context_.values());
    symptom.values["step"] = t + 1;
    symptom.values["deviation"] = digits(symptom.deviation);
    symptoms_.push_back(std::move(symptom));
  }

  const RunContext& context_;
  Symptoms& symptoms_;
  bool ddp_;
  bool by_hand_;  ///< the step's TODOs are what DistributedDataParallel does
  bool targets_;  ///< gradients must be the mean over all ranks' targets
  bool rates_are_scaled_ = false, rates_are_judged_ = true;
};

}  // namespace

void gradients(const RunContext& context, Symptoms& symptoms) {
  if (!context.truth.error.empty() && context.run().result.success()) {
    auto values = context.values();
    values["error"] = context.truth.error;
    symptoms.push_back(
        {.id = "optimizer_of_another_model", .values = values, .evidence = {{"error", {}}}});
    return;
  }
  Gradients(context, symptoms).judge();
}

}  // namespace checker::rules
