#pragma once

namespace distributed_utils::detail {

/// Has the collectives recorded of process groups and Gloo backends that the program makes without
/// distributed_utils. Once per process, while recording is on.
void observe_foreign_groups();

}  // namespace distributed_utils::detail
