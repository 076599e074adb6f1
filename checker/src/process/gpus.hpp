#pragma once
#include <cstddef>

namespace checker {

/// How many GPUs programs started from here see: what CUDA_VISIBLE_DEVICES lists, else those of the
/// machine.
size_t gpus_here();

}  // namespace checker
