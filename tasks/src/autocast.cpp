#include "tasks/autocast.hpp"

namespace tasks {

Autocast::Autocast(at::DeviceType device, Products products)
    : device_(device), on_(are_narrow(products)) {
  if (!on_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  was_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, narrow_type(products));
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  // The outermost one drops the copies that were made of parameters: the next step changes these.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_type_);
}

at::Tensor operand(const at::Tensor& tensor) {
  const auto device = tensor.device().type();
  if (tensor.scalar_type() != at::kFloat || !at::autocast::is_autocast_enabled(device)) {
    return tensor;
  }
  return tensor.to(at::autocast::get_autocast_dtype(device));
}

}  // namespace tasks
