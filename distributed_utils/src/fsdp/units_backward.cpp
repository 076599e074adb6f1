#include <torch/csrc/autograd/engine.h>

#include <algorithm>

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
  turns_.assign(used_.rbegin(), used_.rend());
  std::erase_if(turns_, [](const Unit* unit) { return !unit->has_trained(); });
  turn_ = 0;
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this()] {
    if (const auto units = weak.lock()) units->end_backward();
  });
  units_[0]->call_opened();  // to the end
  units_[0]->gather();
}

void Units::before_backward_of(Call& call) {
  begin_backward();
  if (call.has_input && call.open_in != backwards_) {
    call.open_in = backwards_;
    call.unit.call_opened();
  }
  call.unit.start_gather();
  if (call.forward == forwards_) {
    prefetch(calls_, call.position - 1, -1, backward_prefetch_);
  }
  call.unit.gather();
}

void Units::input_has_gradient(Call& call) {
  if (!in_backward_ || call.open_in != backwards_) return;
  call.open_in = 0;
  call.unit.call_closed();
  settle(call.unit);
}

void Units::arrived(Unit& unit, size_t parameter) {
  begin_backward();
  unit.arrived(parameter);
  settle(unit);
}

void Units::settle(Unit& unit) {
  if (!unit.is_done()) return;
  unit.free();
  if (!unit.has_trained()) return;
  unit.expect_gradients();
  if (!synchronizes_) return unit.keep_gradients();
  if (unit.is_reduced && unit.has_whole_gradients()) return reduce(unit);
  unit.is_ready = true;
  reduce_in_turn();
}

// A unit that is done before its turn waits, because on another rank it may have to: there, a
// parameter may be out of use.
void Units::reduce_in_turn() {
  for (; turn_ < turns_.size() && turns_[turn_]->is_ready; ++turn_) {
    turns_[turn_]->is_reduced = true;
    reduce(*turns_[turn_]);
  }
}

void Units::reduce(Unit& unit) {
  finish_reduction();
  unit.start_reduction();
  reducing_ = &unit;
}

void Units::finish_reduction() {
  if (auto* const unit = std::exchange(reducing_, nullptr)) unit->finish_reduction();
}

/// The units of which a parameter has no gradient.
void Units::reduce_the_rest() {
  for (; turn_ < turns_.size(); ++turn_) reduce(*turns_[turn_]);
  for (const auto& unit : units_) {
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
    unit->end_backward();
  }
  in_backward_ = false;
}

}  // namespace distributed_utils::detail
