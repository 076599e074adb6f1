#pragma once

namespace instrumentation {

/// Has distributed_utils tell what it does to the logs of this process, while one is open.
void watch_distributed_utils();

}  // namespace instrumentation
