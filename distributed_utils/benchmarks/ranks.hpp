#pragma once

namespace ranks {

/// Called first in main: starts this program `world_size` times as ranks that find each other
/// through a file, and returns the exit code for main once all have ended. In such a rank (or one
/// that torchrun started) it returns -1 at once.
int start(int world_size, char** argv);

}  // namespace ranks
