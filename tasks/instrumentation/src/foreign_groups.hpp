#pragma once

namespace instrumentation {

/// Has the collectives recorded of process groups and Gloo backends that the program makes without
/// distributed_utils. Once per process, while recording is on.
void observe_foreign_groups();

}  // namespace instrumentation
