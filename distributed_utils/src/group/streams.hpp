#pragma once
/// Streams of whatever device a tensor is on, without CUDA's headers.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace distributed_utils::detail {

inline c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// What is queued on `here` from now on starts after what is queued on `other` already. The host
/// waits for nothing.
inline void wait_for(c10::Stream other, c10::Stream here) {
  c10::Event event(other.device_type());
  event.record(other);
  event.block(here);
}

}  // namespace distributed_utils::detail
