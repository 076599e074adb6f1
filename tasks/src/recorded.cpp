#include "tasks/recorded.hpp"

#include "evidence.hpp"
#include "graph/watched_step.hpp"
#include "phases.hpp"

namespace tasks {

ObservedStep::ObservedStep(const torch::optim::Optimizer& optimizer) {
  graph::WatchedStep::note_step(optimizer);
  phases::optimizer_begins(optimizer);
  evidence::step_begins(optimizer);
}

ObservedStep::~ObservedStep() {
  evidence::step_ends();
  phases::optimizer_ends();
}

}  // namespace tasks
