#include "updates.hpp"

#include <nlohmann/json.hpp>

#include "arithmetic.hpp"

namespace replay {

std::vector<Flat> follow_updates(Stepper& stepper, const std::vector<checker::StepSeen>& steps,
                                 nlohmann::json& entries) {
  std::vector<Flat> after;
  for (size_t t = 0; t < steps.size(); ++t) {
    const auto& rates = steps[t].learning_rates;
    const auto stepper_rates = stepper.rates();
    const double rates_apart = rates.empty() ? 0 : rates_deviation(rates, stepper_rates);
    after.push_back(stepper.step(steps[t]));
    if (t >= entries.size()) continue;
    auto& entry = entries[t];
    entry["rates"] = rates_apart;
    entry["rate_factor"] = common_factor(rates, stepper_rates);
    if (t + 1 == steps.size()) continue;
    entry["update"] = finite(deviation(steps[t + 1].values, after.back()));
  }
  return after;
}

}  // namespace replay
