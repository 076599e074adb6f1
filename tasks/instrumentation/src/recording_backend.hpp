#pragma once
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "calls.hpp"

namespace instrumentation {

/// A backend that records each collective and passes it on.
c10::intrusive_ptr<c10d::Backend> wrap_recorded(c10::intrusive_ptr<c10d::Backend> backend,
                                                std::shared_ptr<RecordedGroup> group);

/// True for a backend that wrap_recorded() made.
bool is_recorded(const c10d::Backend& backend);

}  // namespace instrumentation
