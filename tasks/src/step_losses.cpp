#include "step_losses.hpp"

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <optional>

#include "instrumentation/monitoring.hpp"

namespace tasks {

namespace monitoring = instrumentation::monitoring;

namespace {

// Between two copies from a GPU: each costs some ten microseconds of the host's time.
constexpr std::chrono::milliseconds kBetweenCopies{100};

void record_mean(int64_t step, double sum, int64_t count) {
  if (count == 0) return;
  monitoring::record_one(instrumentation::Kind::step_loss,
                         instrumentation::StepLossRecord{.step = static_cast<uint64_t>(step),
                                                         .mean = sum / static_cast<double>(count)});
}

// A loss on its way to the host.
struct Copy {
  Copy(int64_t of_step, const Loss& loss)
      : step(of_step),
        count(loss.count),
        value(at::empty({}, at::TensorOptions(at::kDouble).pinned_memory(true))),
        arrived(loss.sum.device().type()) {
    const auto device = loss.sum.device();
    value.copy_(loss.sum.detach().to(at::kDouble), /*non_blocking=*/true);
    arrived.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }

  int64_t step;
  int64_t count;
  at::Tensor value;
  c10::Event arrived;
};

class Copies {
 public:
  void look(int64_t step, const Loss& loss) {
    const auto now = std::chrono::steady_clock::now();
    if (under_way_ && under_way_->arrived.query()) {
      record_mean(under_way_->step, under_way_->value.item<double>(), under_way_->count);
      under_way_.reset();
    }
    if (under_way_ || now - last_ < kBetweenCopies) return;
    last_ = now;
    under_way_.emplace(step, loss);
  }

 private:
  std::optional<Copy> under_way_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace

void record_loss(int64_t step, const Loss& loss) {
  const at::NoGradGuard no_grad;
  if (loss.sum.device().is_cpu()) {
    record_mean(step, loss.sum.detach().item<double>(), loss.count);
    return;
  }
  static auto* const copies = new Copies;  // leaked: the driver may be gone before statics are
  copies->look(step, loss);
}

}  // namespace tasks
