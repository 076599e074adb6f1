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
  const bool is_trained = std::ranges::any_of(gather_->parameters(), &ShardedParameter::is_trained);
  if (is_trained) reduction_ = std::make_unique<Reduction>(gather_->parameters(), sharing);
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

}  // namespace distributed_utils::detail
