#include "fsdp/unit.hpp"

#include <algorithm>
#include <utility>

namespace distributed_utils::detail {

Unit::Unit(UnitContents contents, const Sharing& sharing)
    : name_(contents.block ? std::move(contents.name) : "(the rest)"),
      block_(std::move(contents.block)),
      sharing_(sharing) {
  if (contents.parameters.empty()) return;
  gather_ = std::make_unique<Gather>(contents.parameters, sharing);
  for (const auto& parameter : gather_->parameters()) {
    ++(parameter.is_trained() ? trained_ : frozen_);
  }
  has_arrived_.assign(gather_->parameters().size(), false);
  if (trained_ > 0) reduction_ = std::make_unique<Reduction>(gather_->parameters(), sharing);
}

std::vector<ShardedParameter>& Unit::parameters() {
  return gather_ ? gather_->parameters() : none_;
}

void Unit::tell(UnitEvent event) const {
  if (Observer* const watching = observer()) watching->unit_event(name_, event);
}

void Unit::start_gather() {
  if (gather_ && gather_->start()) tell(UnitEvent::gather_issued);
}

void Unit::gather() {
  start_gather();
  if (!gather_ || !gather_->is_under_way()) return;
  gather_->finish();
  tell(UnitEvent::gathered);
}

void Unit::free() {
  if (!gather_ || gather_->is_free()) return;
  gather_->free();
  if (gather_->is_free()) tell(UnitEvent::freed);
}

void Unit::arrived(size_t i) {
  if (has_arrived_[i]) return;  // once more, in a backward() within backward()
  has_arrived_[i] = true;
  ++arrivals_;
}

// Whatever reads a trained parameter in backward() gives it a gradient, so nothing does after all
// have arrived. What reads a frozen one is known to be over when the unit's input has its gradient.
bool Unit::is_done() const { return arrivals_ == trained_ && (frozen_ == 0 || open_calls_ <= 0); }

bool Unit::has_whole_gradients() {
  return std::ranges::any_of(parameters(),
                             [](const ShardedParameter& one) { return one.has_whole_gradient(); });
}

void Unit::keep_gradients() {
  if (!sharing_.policy.reduce_dtype) return;
  for (auto& parameter : parameters()) parameter.keep_gradient(*sharing_.policy.reduce_dtype);
}

void Unit::start_reduction() {
  reduction_->start();
  tell(UnitEvent::reduce_issued);
}

void Unit::finish_reduction() {
  reduction_->finish();
  tell(UnitEvent::reduced);
}

void Unit::expect_gradients() {
  std::fill(has_arrived_.begin(), has_arrived_.end(), false);
  arrivals_ = 0;
}

void Unit::end_backward() {
  expect_gradients();
  open_calls_ = 0;
  is_ready = false;
  is_reduced = false;
}

}  // namespace distributed_utils::detail
