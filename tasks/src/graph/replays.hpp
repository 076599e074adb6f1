#pragma once
#include <torch/types.h>

#include <cstdint>

namespace tasks::graph {

/// What the host knows of a step that a graph repeats.
struct ReplayedStep {
  uint64_t number = 0;  ///< from 1
  uint64_t begun = 0;   ///< when the host began to fetch its batch, in the clock of monitoring
  uint64_t targets = 0;
  double learning_rate = 0;
};

/// The replays that a GPU has not finished yet. The host runs ahead of them, so events on the GPU
/// tell when they ran: monitoring gets their times. Where several ranks train, a thread sees to it
/// that replays end: NCCL's own watchdog knows nothing of collectives in graphs. When none has
/// ended for as long as setup() lets a collective wait, it reports the ranks that are gone and ends
/// the process.
class Replays {
 public:
  /// Of this process, which trains on one device.
  static Replays& of_process();

  /// To be called around a replay, by the thread that trains.
  void begins(torch::Device device);
  void ends();
  /// Says which step the last replay was.
  void label(const ReplayedStep& step);
  /// True between ends() and label().
  bool wants_label() const;
  /// Waits for all of them. Where monitoring is off it does nothing.
  void finish();

 private:
  Replays();
  struct State;
  State* state_;  ///< leaked: the thread may look at it until the very end
};

}  // namespace tasks::graph
