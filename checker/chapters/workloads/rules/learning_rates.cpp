// Every rank steps with the schedule's learning rate times the square root of the world size.
#include <algorithm>
#include <cmath>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void learning_rates(const RunContext& context, Symptoms& symptoms);

namespace {

class LearningRates {
 public:
  explicit LearningRates(const RunContext& context)
      : context_(context), wanted_(std::sqrt(static_cast<double>(context.world()))) {}

  void judge(Symptoms& symptoms) const {
    size_t steps = 0;
    for (const auto& rank : context_.truth.ranks) steps = std::max(steps, rank.steps.size());
    for (size_t t = 0; t < steps; ++t) {
      if (auto symptom = look_at(t)) {
        symptoms.push_back(std::move(*symptom));
        return;
      }
    }
  }

 private:
  bool is(double factor, double wanted) const {
    return std::abs(factor / wanted - 1) <= context_.gradient_tolerance();
  }

  const StepDeviations* step_of(size_t rank, size_t t) const {
    const auto& steps = context_.truth.ranks[rank].steps;
    return t < steps.size() ? &steps[t] : nullptr;
  }

  std::optional<Symptom> look_at(size_t t) const {
    std::vector<size_t> wrong;
    for (size_t rank = 0; rank < context_.truth.ranks.size(); ++rank) {
      const auto* step = step_of(rank, t);
      if (!step || is(step->rate_factor, wanted_)) continue;
      if (step->rate_factor == 0 && step->rates <= context_.tolerance()) continue;  // both are zero
      wrong.push_back(rank);
    }
    if (wrong.empty()) return std::nullopt;
    const auto& example = *step_of(wrong.front(), t);
    const double factor = example.rate_factor;
    if (factor == 0) return not_the_schedules(wrong.front(), t, example.rates);
    Symptom symptom{.id = "learning_rate_not_for_this_world", .values = context_.values()};
    symptom.values["step"] = t + 1;
    symptom.evidence = {
        {"factor",
         {{"ranks", ranks_value(wrong)}, {"got", digits(factor)}, {"wanted", digits(wanted_)}}}};
    symptom.deviation = std::abs(factor / wanted_ - 1);
    if (differ(t)) {
      symptom.id = "learning_rates_differ";
      return symptom;
    }
    symptom.variant = reading(wrong.front(), factor);
    if (symptom.variant == "unchanged") symptom.kind = FindingKind::not_started;
    return symptom;
  }

  bool differ(size_t t) const {
    const auto* first = step_of(0, t);
    for (size_t rank = 1; rank < context_.truth.ranks.size(); ++rank) {
      const auto* other = step_of(rank, t);
      if (first && other && !is(other->rate_factor, first->rate_factor)) return true;
    }
    return false;
  }

  std::string reading(size_t rank, double factor) const {
    const auto local = static_cast<double>(context_.run().ranks[rank].place.local_world_size);
    if (is(factor, 1)) return "unchanged";
    if (is(factor, static_cast<double>(context_.world()))) return "world";
    if (is(factor, std::sqrt(local)) || is(factor, local)) return "local";
    return "";
  }

  Symptom not_the_schedules(size_t rank, size_t t, double deviation) const {
    Symptom symptom{.id = "learning_rate_not_the_schedules",
                    .values = context_.values(),
                    .evidence = {{"off_by", {{"rank", rank}}}},
                    .deviation = deviation};
    symptom.values["step"] = t + 1;
    symptom.values["deviation"] = digits(deviation);
    return symptom;
  }

  const RunContext& context_;
  double wanted_;  ///< times the schedule's
};

}  // namespace

void learning_rates(const RunContext& context, Symptoms& symptoms) {
  if (context.expects(feature::scaled_rate)) LearningRates(context).judge(symptoms);
}

}  // namespace checker::rules
