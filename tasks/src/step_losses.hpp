#pragma once
#include "tasks/task.hpp"

namespace tasks {

/// Records the mean training loss of a step for monitoring. On a GPU nobody waits for it: it is
/// copied now and then, and recorded at a later step, when the copy has come.
void record_loss(int64_t step, const Loss& loss);

}  // namespace tasks
