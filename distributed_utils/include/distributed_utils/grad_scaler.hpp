#pragma once
/// GradScaler makes fp16 training possible. fp16 holds numbers from 6e-8 to 65504, but many
/// gradients are smaller. So the scaler multiplies the loss before backward() and divides the
/// gradients after it. If a factor is too large, it skips one step and halves the factor.
#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <unordered_map>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

struct GradScalerOptions {
  double init_scale = 65536;       ///< the first factor
  double growth_factor = 2;        ///< the scale times this after growth_interval good steps
  double backoff_factor = 0.5;     ///< the scale times this after a skipped step
  int64_t growth_interval = 2000;  ///< good steps in a row, at least 1
  bool enabled = true;             ///< false: scale() and the others change nothing
  /// The ranks that skip the same steps. Empty: the world. unscale_() all-reduces one number among
  /// them.
  Group group = {};
  /// False saves that all-reduce. Use it where all ranks have the same gradients, as after
  /// DistributedDataParallel: an infinity on one rank is in every average.
  bool agree = true;
};

/// Python's torch.amp.GradScaler (docs.pytorch.org/docs/stable/amp.html#gradient-scaling;
/// Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.2). In a training step:
///
///   optimizer.zero_grad();
///   scaler.scale(loss).backward();
///   scaler.unscale_(optimizer);  // only if something looks at gradients, as clipping does
///   clip_grad_norm_(model->parameters(), 1.0);
///   scaler.step(optimizer);      // does nothing if a gradient is infinite or NaN
///   scaler.update();
///
/// Several optimizers may share one: a step() for each, then one update(). Scale and growth tracker
/// are tensors on the loss's device. scale(), unscale_() and update() never wait for the device, so
/// a CUDA graph can hold them; step() waits, as in Python, because an optimizer steps or does not.
class GradScaler {
 public:
  /// Throws Error unless 0 < init_scale, growth_factor > 1, 0 < backoff_factor < 1 and
  /// growth_interval > 0.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// The loss times the scale, of the loss's shape.
  at::Tensor scale(const at::Tensor& loss);

  /// Divides the optimizer's gradients, in place, and looks for infinities and NaNs in them. All
  /// ranks of the group call it. Throws Error before the first scale(), the second time in a step,
  /// after step(), and for fp16 gradients, which cannot be divided without loss: parameters must
  /// stay fp32.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// unscale_(), unless it was called, and optimizer.step() if all gradients are finite. True if
  /// the optimizer stepped; the same on all ranks of the group. Throws Error as unscale_(), the
  /// second time before update(), and where the optimizer has no gradient on any rank.
  bool step(torch::optim::Optimizer& optimizer);

  /// After a step: shrinks the scale if an optimizer found an infinity, else counts the step and
  /// grows the scale when it is time. Throws Error if no optimizer was looked at.
  void update();
  /// The same, but the scale becomes this one. The growth tracker stays. Throws Error before the
  /// first scale() and unless it is positive.
  void update(double new_scale);

  /// Float [], 1 if a gradient is infinite or NaN on a rank of the group, else 0; on the scale's
  /// device. For optimizers that decide there, such as at::_fused_adamw_. Throws Error unless
  /// unscale_() or step() was called since the last update().
  at::Tensor found_inf(const torch::optim::Optimizer& optimizer) const;

  /// Waits for the device. 1 if it is not enabled.
  double get_scale() const;
  /// Good steps since the scale last changed. Waits for the device.
  int64_t get_growth_tracker() const;
  bool is_enabled() const { return options_.enabled; }

  /// By Python's names, scalars on the CPU: "scale" (float), "growth_factor", "backoff_factor"
  /// (double), "growth_interval" and "_growth_tracker" (int64). Nothing if it is not enabled. To be
  /// asked after update(). Waits for the device.
  StateDict state_dict() const;
  /// Replaces all of it; does nothing if it is not enabled. Throws Error, and changes nothing, if
  /// one of the names is missing.
  void load_state_dict(const StateDict& state);

 private:
  enum class Stage { unscaled, stepped };
  struct Look {
    Stage stage = Stage::unscaled;
    at::Tensor found_inf;
    at::Tensor looked;  // 1 if a rank has gradients
  };

  void check_has_scale(const char* caller) const;

  GradScalerOptions options_;
  int64_t init_growth_tracker_ = 0;
  at::Tensor scale_;           // float [], on the first loss's device; undefined before
  at::Tensor growth_tracker_;  // int32 [], the same
  std::unordered_map<const torch::optim::Optimizer*, Look> looks_;  // since the last update()
};

}  // namespace distributed_utils
