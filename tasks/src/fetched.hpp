#pragma once
/// Which samples a batch holds, known while recording: loaders with workers fetch ahead and out of
/// order, so the order in which batches are used is told when they are.
#include "evidence.hpp"
#include "tasks/task.hpp"

namespace tasks {

/// Remembers what a fetched batch holds. Thread-safe.
void remember_fetched(const Batch& batch, evidence::Payload fetched);

/// What this batch holds, however often it is asked for; empty for a batch that was not fetched.
evidence::Payload fetched_in(const Batch& batch);

}  // namespace tasks
