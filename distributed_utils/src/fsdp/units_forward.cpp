#include <algorithm>

#include "distributed_utils/error.hpp"
#include "fsdp/units.hpp"
#include "group/streams.hpp"

namespace distributed_utils::detail {

Units::Units(std::vector<UnitContents> contents, Sharing sharing,
             const FullyShardedDataParallelOptions& options)
    : sharing_(std::move(sharing)),
      frees_after_forward_(options.reshard_after_forward),
      forward_prefetch_(options.forward_prefetch),
      backward_prefetch_(options.backward_prefetch) {
  for (auto& unit : contents) units_.push_back(std::make_unique<Unit>(std::move(unit), sharing_));
  for (size_t i = 1; i < units_.size(); ++i) expected_.push_back(units_[i].get());
}

void Units::follow_blocks() {
  for (const auto& one : units_) {
    if (!one->block()) continue;
    const auto weak = weak_from_this();
    one->block()->register_forward_pre_hook([weak, unit = one.get()] {
      if (const auto units = weak.lock()) units->before_block(*unit);
    });
    one->block()->register_forward_input_hook([weak, unit = one.get()](at::Tensor input) {
      const auto units = weak.lock();
      return units ? units->watch_input(*unit, input) : input;
    });
    one->block()->register_forward_hook([weak, unit = one.get()](at::Tensor output) {
      const auto units = weak.lock();
      return units ? units->after_block(*unit, output) : output;
    });
  }
}

/// What was gathered before the optimizer's last step is of no use any more.
void Units::shards_may_have_changed() {
  if (sharing_.gather_stream) {
    wait_for(current_stream(sharing_.gather_stream->device()), *sharing_.gather_stream);
  }
}

void Units::begin_forward(bool synchronizes) {
  if (in_backward_) forget_backward();  // it has thrown
  if (!keeps_gathered_) {
    free_all();
    shards_may_have_changed();
  }
  keeps_gathered_ = false;
  in_forward_ = true;
  entered_.clear();
  left_.reset();
  calls_.clear();
  ++forwards_;
  trains_ = at::GradMode::is_enabled();
  if (trains_) {
    synchronizes_ = synchronizes;
    if (std::exchange(used_is_over_, false)) {
      used_.clear();
      for (const auto& unit : units_) {
        unit->is_used = false;
        unit->calls = 0;
      }
    }
    auto& rest = *units_[0];
    if (!std::exchange(rest.is_used, true)) used_.push_back(&rest);
  }
  units_[0]->start_gather();
  prefetch(expected_, 0, 1, forward_prefetch_);
  units_[0]->gather();
}

/// Starts to gather `count` units from `position` on.
void Units::prefetch(const std::vector<Unit*>& order, size_t position, int step, int count) {
  for (int i = 0; i < count && position < order.size(); ++i, position += step) {
    order[position]->start_gather();  // below 0 is far beyond the end
  }
}

void Units::before_block(Unit& unit) {
  if (!is_active()) return;
  if (!in_forward_ && !in_backward_) {
    throw Error("FullyShardedDataParallel: the block " + unit.name() +
                " was called outside of the model's forward. Fix: call model->forward(), not "
                "model->module()->forward().");
  }
  const size_t position = calls_.size();
  entered_.push_back(std::make_shared<Call>(Call{unit, position, forwards_}));
  if (in_backward_) return unit.gather();  // recomputation, which forward has counted
  calls_.push_back(&unit);
  if (trains_ && !std::exchange(unit.is_used, true)) used_.push_back(&unit);
  unit.start_gather();
  if (position < expected_.size() && expected_[position] == &unit) {
    prefetch(expected_, position + 1, 1, forward_prefetch_);
  }
  unit.gather();
}

// When the input has its gradient, everything in the unit has been through its backward: the engine
// takes what was made last first.
at::Tensor Units::watch_input(Unit& unit, const at::Tensor& input) {
  if (!is_active() || entered_.empty() || &entered_.back()->unit != &unit) return input;
  if (!at::GradMode::is_enabled() || !input.defined() || !input.requires_grad()) return input;
  // A leaf was made before everything, but has its gradient in no order with the parameters.
  const auto watched = input.is_leaf() ? input.view_as(input) : input;
  const auto& call = entered_.back();
  if (left_ && left_->made_output.lock() == watched.grad_fn()) left_->next = call;
  watched.register_hook([weak = weak_from_this(), call](const at::Tensor&) {
    if (const auto units = weak.lock()) units->after_backward_of(*call);
  });
  return watched;
}

at::Tensor Units::after_block(Unit& unit, const at::Tensor& output) {
  if (!is_active() || entered_.empty()) return output;
  const auto call = entered_.back();
  entered_.pop_back();
  const bool has_backward =
      at::GradMode::is_enabled() && output.defined() && output.requires_grad();
  if (has_backward) ++unit.calls;
  if (in_backward_) return output;  // recomputed: its backward comes at once
  if (!has_backward) {
    unit.free();
    return output;
  }
  call->made_output = output.grad_fn();
  left_ = call;
  output.register_hook([weak = weak_from_this(), call](const at::Tensor&) {
    if (const auto units = weak.lock()) units->before_backward_of(*call);
  });
  // backward() wants the last one at once.
  const bool is_last = calls_.size() == expected_.size() && expected_.back() == &unit;
  if (frees_after_forward_ && !is_last) unit.free();
  return output;
}

void Units::end_forward(const std::vector<at::Tensor>& outputs) {
  bool has_backward = false;
  for (const auto& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    has_backward = true;
    output.register_hook([weak = weak_from_this()](const at::Tensor&) {
      if (const auto units = weak.lock()) units->begin_backward();
    });
  }
  if (!is_active()) return;
  expected_ = calls_;
  if (!has_backward) return free_all();
  for (size_t i = 1; i < units_.size(); ++i) {  // those gathered ahead without use
    if (std::ranges::find(calls_, units_[i].get()) == calls_.end()) units_[i]->free();
  }
}

void Units::start_gathers() {
  shards_may_have_changed();
  keeps_gathered_ = true;
  for (const auto& unit : units_) unit->start_gather();
}

void Units::free_all() {
  keeps_gathered_ = false;
  for (const auto& unit : units_) unit->free();
}

void Units::begin_whole() {
  if (in_forward_ || in_backward_) {
    throw Error(
        "summon_full_params() was called within forward() or backward(). Fix: call it between "
        "steps.");
  }
  if (whole_ == 0) {
    if (!keeps_gathered_) free_all();
    start_gathers();
    for (const auto& unit : units_) unit->gather();
  }
  ++whole_;
}

void Units::end_whole() {
  if (--whole_ == 0) free_all();
}

}  // namespace distributed_utils::detail
