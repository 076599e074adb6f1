#pragma once
/// Times in which a process is not observed, although it is recorded or monitored.

namespace instrumentation {

/// While one lives, seams of this process tell nothing, on any thread. What a CUDA graph captures
/// does not happen yet, and the events by which a collective's end is known must not be asked for.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  static bool lives();
};

}  // namespace instrumentation
