#include "tasks/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tasks {

Schedule::Schedule(torch::optim::Optimizer& optimizer, Factor factor)
    : optimizer_(optimizer), factor_(std::move(factor)) {
  for (const auto& group : optimizer.param_groups()) rates_.push_back(group.options().get_lr());
  restore(0);
}

void Schedule::restore(int64_t steps) {
  steps_ = steps;
  if (!factor_) return;
  const double factor = factor_(steps);
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates_[i] * factor);
}

Schedule::Factor cosine_with_warm_up(int64_t total, int64_t warm_up) {
  return [=](int64_t steps) {
    const auto x = static_cast<double>(std::min(steps, total));
    const double falling = (1 + std::cos(std::numbers::pi * x / static_cast<double>(total))) / 2;
    if (warm_up == 0) return falling;
    return std::min((x + 1) / static_cast<double>(warm_up), falling);
  };
}

Schedule::Factor step_decay(int64_t every, double gamma) {
  return [=](int64_t steps) { return std::pow(gamma, static_cast<double>(steps / every)); };
}

Schedule::Factor one_cycle(int64_t total, double rising, double div, double div_final) {
  const auto between = [](double from, double to, double part) {
    return from + (1 + std::cos(std::numbers::pi * (1 - part))) * (to - from) / 2;
  };
  return [=](int64_t steps) {
    const double done = static_cast<double>(std::min(steps, total)) / static_cast<double>(total);
    if (done < rising) return between(1 / div, 1, done / rising);
    return between(1, 1 / div_final, (done - rising) / (1 - rising));
  };
}

}  // namespace tasks
