#include <torch/csrc/autograd/engine.h>

#include <utility>

#include "distributed_utils/error.hpp"
#include "fsdp/units.hpp"

namespace distributed_utils::detail {

// Called by the hook on forward's output, which backward() meets first.
void Units::begin_backward() {
  if (in_backward_) return;
  if (!is_active()) {
    throw Error(
        "backward() was called while summon_full_params() keeps parameters whole. Fix: let what it "
        "returned end before the training step.");
  }
  in_backward_ = true;
  ++backwards_;
  used_is_over_ = true;
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this()] {
    if (const auto units = weak.lock()) units->end_backward();
  });
  units_[0]->gather();
}

void Units::before_backward_of(Call& call) {
  begin_backward();
  // Its hook comes next. It frees memory, which is to be done before more is taken.
  if (const auto next = call.next.lock()) after_backward_of(*next);
  call.unit.start_gather();
  if (call.forward == forwards_) prefetch(calls_, call.position - 1, -1, backward_prefetch_);
  call.unit.gather();
}

void Units::after_backward_of(Call& call) {
  if (!in_backward_ || std::exchange(call.over_in, backwards_) == backwards_) return;
  auto& unit = call.unit;
  if (++unit.calls_over != unit.calls) return;
  unit.free();
  if (!unit.has_trained()) return;
  if (synchronizes_) {
    reduce(unit);
  } else {
    unit.keep_gradients();
  }
}

void Units::reduce(Unit& unit) {
  finish_reduction();
  unit.start_reduction();
  unit.is_reduced = true;
  reducing_ = &unit;
}

void Units::finish_reduction() {
  if (auto* const unit = std::exchange(reducing_, nullptr)) unit->finish_reduction();
}

/// Units whose input has no gradient, as the model's first one, and what backward() has not
/// reached.
void Units::reduce_the_rest() {
  for (auto unit = used_.rbegin(); unit != used_.rend(); ++unit) {
    if ((*unit)->is_reduced || !(*unit)->has_trained()) continue;
    (*unit)->free();
    reduce(**unit);
  }
  for (const auto& unit : units_) {  // added up under no_sync(), and not used since
    if (unit->has_trained() && unit->has_whole_gradients()) reduce(*unit);
  }
  finish_reduction();
}

void Units::end_backward() {
  if (!in_backward_) return;
  if (synchronizes_) {
    reduce_the_rest();
  } else {
    for (const auto& unit : units_) unit->keep_gradients();
  }
  forget_backward();
}

void Units::forget_backward() {
  finish_reduction();
  for (const auto& unit : units_) {
    unit->free();
    unit->calls_over = 0;
    unit->is_reduced = false;
  }
  in_backward_ = false;
}

}  // namespace distributed_utils::detail
