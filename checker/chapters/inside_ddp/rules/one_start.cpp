// Before the first step all ranks hold rank 0's parameters and buffers, as its make_model returned
// them, and not by luck. Whether they hold the same parameters at all is said by the rule on
// gradients.
#include <algorithm>

#include "judge/collectives.hpp"
#include "judge/rules/deviation.hpp"
#include "judge/rules/gradient_messages.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void one_start(const RunContext& context, Symptoms& symptoms);

namespace {

using Values = std::vector<double>;

const TensorSeen* named(const std::vector<TensorSeen>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorSeen::name);
  return found == tensors.end() ? nullptr : &*found;
}

// The parameters as make_model returned them, in the order of the steps' values; empty if one is
// not there.
Values made_by(const RankSeen& rank) {
  Values all;
  for (const auto& parameter : rank.parameters) {
    const auto* made = named(rank.model, parameter.name);
    if (!made) return {};
    all.insert(all.end(), made->values.begin(), made->values.end());
  }
  return all;
}

class OneStart {
 public:
  OneStart(const RunContext& context, Symptoms& symptoms)
      : context_(context), ranks_(context.run().ranks), symptoms_(symptoms) {}

  void judge() {
    for (const auto& rank : ranks_) {
      if (rank.steps.empty()) return;
    }
    look_at_parameters();
    look_at_buffers();
    if (symptoms_.empty()) look_at_waits();
  }

 private:
  void look_at_parameters() {
    const auto& first = ranks_[0].steps[0].values;
    const auto alike = [&](const RankSeen& rank) {
      return deviation(rank.steps[0].values, first) <= context_.tolerance();
    };
    const auto made = made_by(ranks_[0]);
    if (made.empty() || !std::ranges::all_of(ranks_, alike)) return;
    if (comes_late(made)) return;
    const double apart = deviation(first, made);
    if (apart <= context_.tolerance() || written_before_steps()) return;
    symptoms_.push_back({.id = "start_not_rank_0s",
                         .values = context_.values(),
                         .evidence = {{"off_by", {{"deviation", digits(apart)}}}},
                         .deviation = apart});
  }

  // In no step are the parameters what the optimizer made of the last ones: before each step they
  // are written, and so before the first. Nothing is known of the start.
  bool written_before_steps() {
    const auto& steps = context_.truth.ranks[0].steps;
    if (steps.size() < 2) return false;
    const auto changed = [&](const StepDeviations& step) {
      return step.update > context_.tolerance();
    };
    if (!std::all_of(steps.begin(), steps.end() - 1, changed)) return false;
    Symptom symptom{.id = "parameters_changed_beside_the_optimizer",
                    .values = context_.values(),
                    .evidence = {{"off_by", {{"rank", size_t{0}}}}},
                    .variant = "before_steps",
                    .deviation = steps[0].update};
    symptom.values["step"] = size_t{1};
    symptom.values["deviation"] = digits(symptom.deviation);
    symptoms_.push_back(std::move(symptom));
    return true;
  }

  // They became alike between their first batch and their first step: the gradients of that step
  // are of different models, and their mean is that of none.
  bool comes_late(const Values& made) {
    const auto made_apart = [&](const RankSeen& rank) {
      return deviation(made_by(rank), made) > context_.tolerance();
    };
    if (sends_before_training(context_.run()) || std::ranges::none_of(ranks_, made_apart)) {
      return false;
    }
    double apart = 0;
    for (const auto& rank : context_.truth.ranks) {
      if (rank.steps.empty() || !rank.steps[0].known) return false;
      apart = std::max(apart, rank.steps[0].mean);
    }
    if (apart <= context_.gradient_tolerance()) return false;
    symptoms_.push_back({.id = "start_comes_late",
                         .values = context_.values(),
                         .evidence = {{"first_step", {{"deviation", digits(apart)}}}},
                         .deviation = apart});
    return true;
  }

  // Of those that training does not change: in others each rank's own batch is already in.
  bool is_constant(const TensorSeen& buffer) const {
    const auto last = ranks_[0].buffers_at(ranks_[0].steps.back().event);
    const auto* later = named(last, buffer.name);
    return later && ranks_[0].steps.size() > 1 && later->values == buffer.values;
  }

  void look_at_buffers() {
    Symptom symptom{.id = "buffers_differ_at_start",
                    .values = context_.values(),
                    .kind = sends_before_training(context_.run()) ? FindingKind::mistake
                                                                  : FindingKind::not_started};
    const auto first = ranks_[0].buffers_at(ranks_[0].steps[0].event);
    for (const auto& buffer : first) {
      const auto* made = named(ranks_[0].model, buffer.name);
      if (!made || !is_constant(buffer)) continue;
      std::vector<size_t> ranks;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        const auto own = ranks_[rank].buffers_at(ranks_[rank].steps[0].event);
        const auto* theirs = named(own, buffer.name);
        if (!theirs) continue;
        const double apart = deviation(theirs->values, made->values);
        if (apart <= context_.tolerance()) continue;
        ranks.push_back(rank);
        symptom.deviation = std::max(symptom.deviation, apart);
      }
      if (ranks.empty()) continue;
      symptom.evidence.push_back({"apart", {{"name", buffer.name}, {"ranks", ranks_value(ranks)}}});
    }
    if (!symptom.evidence.empty()) symptoms_.push_back(std::move(symptom));
  }

  // What nobody waits for may arrive in time all the same.
  void look_at_waits() {
    for (const auto& rank : ranks_) {
      if (rank.phases.empty()) continue;
      const auto* call = not_awaited(rank, first_batch(rank));
      if (!call || !is_followed(rank, *call)) continue;
      symptoms_.push_back(
          {.id = "start_not_waited_for",
           .values = context_.values(),
           .evidence = {seen_call(context_, "not_awaited", rank.place.rank, *call)}});
      return;
    }
  }

  const RunContext& context_;
  const std::vector<RankSeen>& ranks_;
  Symptoms& symptoms_;
};

}  // namespace

void one_start(const RunContext& context, Symptoms& symptoms) {
  if (context.expects(feature::broadcast) && context.world() > 1) {
    OneStart(context, symptoms).judge();
  }
}

}  // namespace checker::rules
