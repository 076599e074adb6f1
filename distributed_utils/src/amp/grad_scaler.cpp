#include "distributed_utils/grad_scaler.hpp"

#include <ATen/ATen.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

void check(const GradScalerOptions& options) {
  if (!options.enabled) return;
  if (options.init_scale > 0 && options.growth_factor > 1 && options.backoff_factor > 0 &&
      options.backoff_factor < 1 && options.growth_interval > 0) {
    return;
  }
  throw Error(fmt::format(
      "GradScaler: scale {}, growth_factor {}, backoff_factor {}, growth_interval {}: "
      "the scale must be more than 0, the growth more than 1, the backoff between 0 "
      "and 1, the interval more than 0.",
      options.init_scale, options.growth_factor, options.backoff_factor, options.growth_interval));
}

/// Gradients that one kernel can take: of one device and type.
using Gradients = std::map<std::pair<c10::Device, at::ScalarType>, std::vector<at::Tensor>,
                           bool (*)(const std::pair<c10::Device, at::ScalarType>&,
                                    const std::pair<c10::Device, at::ScalarType>&)>;

bool comes_before(const std::pair<c10::Device, at::ScalarType>& a,
                  const std::pair<c10::Device, at::ScalarType>& b) {
  const auto key = [](const auto& one) {
    return std::tuple(one.first.type(), one.first.index(), one.second);
  };
  return key(a) < key(b);
}

Gradients gradients_of(const torch::optim::Optimizer& optimizer) {
  Gradients result(&comes_before);
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw Error(
            "GradScaler: a parameter's gradient is fp16. Dividing it by the scale would lose what "
            "the scale preserved. Fix: keep the parameters in fp32 and use autocast for fp16.");
      }
      const at::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
      result[{values.device(), values.scalar_type()}].push_back(values);
    }
  }
  return result;
}

/// Divides all and returns the number of infinities and NaNs, float [] on the scale's device: 0 if
/// there are none.
at::Tensor unscale(const Gradients& gradients, const at::Tensor& scale) {
  const at::NoGradGuard no_grad;
  // As in Python: by way of double, so that the inverse of an odd scale is the nearest float.
  const at::Tensor inverse = scale.to(at::kDouble).reciprocal().to(at::kFloat);
  at::Tensor found = at::zeros({}, scale.options());
  for (const auto& [kind, tensors] : gradients) {
    at::Tensor found_there = at::zeros({}, scale.options().device(kind.first));
    at::_amp_foreach_non_finite_check_and_unscale_(tensors, found_there, inverse.to(kind.first));
    found = at::maximum(found, found_there.to(scale.device()));
  }
  return found;
}

constexpr std::array kNames = {"scale", "growth_factor", "backoff_factor", "growth_interval",
                               "_growth_tracker"};

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) { check(options); }

void GradScaler::check_has_scale(const char* caller) const {
  if (scale_.defined()) return;
  throw Error(
      fmt::format("GradScaler: {} came before the first scale(). Fix: call "
                  "scaler.scale(loss).backward() first.",
                  caller));
}

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!options_.enabled) return loss;
  if (!scale_.defined()) {
    const auto options = at::TensorOptions().device(loss.device());
    scale_ = at::full({}, options_.init_scale, options.dtype(at::kFloat));
    growth_tracker_ = at::full({}, init_growth_tracker_, options.dtype(at::kInt));
  }
  return loss * scale_.to(loss.device());
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  check_has_scale("unscale_()");
  if (const auto look = looks_.find(&optimizer); look != looks_.end()) {
    throw Error(look->second.stage == Stage::unscaled
                    ? "GradScaler: unscale_() was called twice on this optimizer since the last "
                      "update(). Fix: call it once per step."
                    : "GradScaler: unscale_() was called after step(). Fix: call it before step(), "
                      "and update() at the end.");
  }
  const Gradients gradients = gradients_of(optimizer);
  // The second number tells whether anybody has gradients: who has none waits for the others, too.
  at::Tensor found = at::stack(
      {unscale(gradients, scale_), at::full({}, gradients.empty() ? 0 : 1, scale_.options())});
  if (options_.agree && get_world_size(options_.group) > 1) {
    all_reduce(found, ReduceOp::MAX, options_.group);
  }
  looks_[&optimizer] = {.stage = Stage::unscaled, .found_inf = found[0], .looked = found[1]};
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  check_has_scale("step()");
  if (!looks_.contains(&optimizer)) unscale_(optimizer);
  Look& look = looks_.at(&optimizer);
  if (look.stage == Stage::stepped) {
    throw Error(
        "GradScaler: step() was called twice on this optimizer since the last update(). Fix: call "
        "update() at the end of each step.");
  }
  // One wait for the device, whatever is asked.
  const at::Tensor seen = at::stack({look.found_inf, look.looked}).cpu();
  if (seen[1].item<float>() == 0) {
    throw Error(
        "GradScaler: step(): no parameter of this optimizer has a gradient. Fix: call "
        "scaler.scale(loss).backward() first.");
  }
  const bool is_good = seen[0].item<float>() == 0;
  if (is_good) optimizer.step();
  look.stage = Stage::stepped;
  return is_good;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  check_has_scale("update()");
  if (looks_.empty()) {
    throw Error(
        "GradScaler: update() before any step(). Fix: call step() on each optimizer, then "
        "update().");
  }
  at::Tensor found = at::zeros({}, scale_.options());
  for (const auto& [optimizer, look] : looks_) found = at::maximum(found, look.found_inf);
  at::_amp_update_scale_(scale_, growth_tracker_, found, options_.growth_factor,
                         options_.backoff_factor, options_.growth_interval);
  looks_.clear();
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  check_has_scale("update()");
  if (!(new_scale > 0)) {
    throw Error(fmt::format("GradScaler: update({}): the scale must be more than 0.", new_scale));
  }
  scale_.fill_(new_scale);
  looks_.clear();
}

at::Tensor GradScaler::found_inf(const torch::optim::Optimizer& optimizer) const {
  const auto look = looks_.find(&optimizer);
  if (look != looks_.end()) return look->second.found_inf;
  throw Error(
      "GradScaler: found_inf(): nobody has checked this optimizer's gradients since the last "
      "update(). Fix: call unscale_() first.");
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

int64_t GradScaler::get_growth_tracker() const {
  if (!options_.enabled) return 0;
  return growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : init_growth_tracker_;
}

StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {{"scale", at::scalar_tensor(get_scale(), at::kFloat)},
          {"growth_factor", at::scalar_tensor(options_.growth_factor, at::kDouble)},
          {"backoff_factor", at::scalar_tensor(options_.backoff_factor, at::kDouble)},
          {"growth_interval", at::scalar_tensor(options_.growth_interval, at::kLong)},
          {"_growth_tracker", at::scalar_tensor(get_growth_tracker(), at::kLong)}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!options_.enabled) return;
  for (const char* name : kNames) {
    const auto found = state.find(name);
    if (found != state.end() && found->second.numel() == 1) continue;
    throw Error(
        fmt::format("GradScaler: the state has no number '{}'. Was the scaler that saved it "
                    "disabled? Fix: load a state from state_dict() of an enabled scaler.",
                    name));
  }
  GradScalerOptions loaded = options_;
  loaded.init_scale = state.at("scale").item<double>();
  loaded.growth_factor = state.at("growth_factor").item<double>();
  loaded.backoff_factor = state.at("backoff_factor").item<double>();
  loaded.growth_interval = state.at("growth_interval").item<int64_t>();
  check(loaded);
  options_ = loaded;
  init_growth_tracker_ = state.at("_growth_tracker").item<int64_t>();
  if (!scale_.defined()) return;
  scale_.fill_(options_.init_scale);
  growth_tracker_.fill_(init_growth_tracker_);
}

}  // namespace distributed_utils
